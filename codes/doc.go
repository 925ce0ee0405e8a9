// Package codes holds the error codes that a machine provider answers with, reads them from errors,
// and says how each call recovers from each of them.
//
// A driver returns an [Error] (see [New], [Newf] and [Wrap]). Its caller asks [Of] for the code,
// through any wrapping of the error, and [RecoveryFor] for what to do about it. Errors of other
// libraries keep their code if they have a method Code() whose result spells one of the eighteen
// codes.
//
// The package never reads anything from the text of a message. Messages are for people.
//
// The package imports only the standard library, reads no clock, and is safe for concurrent use.
package codes
