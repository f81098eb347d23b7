//go:build race || lockorder

#include "textflag.h"

// func self() uintptr
TEXT ·self(SB), NOSPLIT, $0-8
	MOVD g, ret+0(FP)
	RET
