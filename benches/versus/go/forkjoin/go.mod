module corsair/forkjoin

go 1.26
