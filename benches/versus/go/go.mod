module corsair/versus

go 1.26
