"""Commands that move a database over: assess, its code, load, verify and repair, cut over."""
