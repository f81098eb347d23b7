module tansy

go 1.26
