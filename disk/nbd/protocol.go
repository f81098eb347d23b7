package nbd

// Numbers of the protocol: https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md
const (
	magicServer   = 0x4e42444d41474943 // "NBDMAGIC"
	magicOption   = 0x49484156454f5054 // "IHAVEOPT"
	magicOldStyle = 0x00420281861253
	magicAnswer   = 0x0003e889045565a9
	magicRequest  = 0x25609513
	magicReply    = 0x67446698

	// Flags of the server, and ours.
	fixedNewstyle = 1 << 0
	noZeroes      = 1 << 1

	optExportName = 1
	optStartTLS   = 5
	optGo         = 7

	answerAck   = 1
	answerInfo  = 3
	answerError = 1 << 31 // and more, which says what is wrong

	errUnsupported     = answerError + 1
	errPolicy          = answerError + 2
	errInvalid         = answerError + 3
	errPlatform        = answerError + 4
	errTLSRequired     = answerError + 5
	errUnknown         = answerError + 6
	errShutdown        = answerError + 7
	errBlockSizeNeeded = answerError + 8
	errTooBig          = answerError + 9

	infoExport    = 0
	infoBlockSize = 3

	// Flags of an export.
	hasFlags        = 1 << 0
	isReadOnly      = 1 << 1
	hasFlush        = 1 << 2
	hasFUA          = 1 << 3
	hasWriteZeroes  = 1 << 6
	requestSize     = 28
	replySize       = 16
	optionSize      = 16
	answerSize      = 20
	maxString       = 4096
	maxAnswer       = 64 << 10 // of one answer to an option, which has a few strings at most
	maxAnswers      = 100      // to one option
	maxPayload      = 32 << 20 // of a request, where the server does not say otherwise
	fua             = 1 << 0   // flag of a request
	commandRead     = 0
	commandWrite    = 1
	commandEnd      = 2
	commandFlush    = 3
	commandZeroes   = 6
	paddingOfExport = 124
)
