// Package codes holds the error codes that a machine provider answers with, reads them from errors,
// and says how each call recovers from each of them.
//
// A driver returns an [Error] (see [New], [Newf] and [Wrap]); whoever called it asks [Of] for the code, whatever
// the error was wrapped in on its way up, and [RecoveryFor] for what to do about it. Errors of other libraries
// keep their code if they have a method Code() whose result spells one of the eighteen.
//
// Nothing here is ever read out of the text of a message: a message is for people.
//
// The package reaches the standard library only, reads no clock, and is safe for concurrent use.
package codes
