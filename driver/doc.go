// Package driver is the port through which the library creates, looks up and deletes machines at a
// provider. Package machine decides which calls are made; the manager makes them. The comment
// of [Driver] lists the duties of each call, and the codes it may answer.
//
// A driver implements [Driver] for one provider. A driver that supports only some of the calls
// embeds [Unimplemented]. It declares further promises by the optional interfaces [FieldUpdater]
// and [IDMatcher].
//
// A driver whose provider limits calls sets codes.Error.RetryAfter when a call is refused for that.
// Errors carry one of the codes of package codes, built with codes.New or codes.Wrap; the library
// reads them with codes.Of through any wrapping. Package drivertest checks whether a driver meets
// the duties stated here.
//
// The port to a provider of groups of machines is in machinepool/pooldriver. It
// shares codes, secrets, interceptors and the rules for answers with this one.
//
// # Interceptors
//
// [Intercept] passes each call of a driver through interceptors, the first of which is the
// outermost: [Hook], [Limit], [Deadline], [Recover], or your own. [Validate] wraps a driver too; it
// checks requests and answers. All can be combined in any order. Each wrapper has a method Unwrap()
// Driver, by which [As] finds what a driver declares. A useful order:
//
//	d = driver.Intercept(d,
//		driver.Limit(limits),      // a deadline counts from the start of the call,
//		driver.Deadline(timeouts), // not from the start of the wait for it
//		driver.Recover(report))    // a panic ends one call only
//	d = driver.Validate(d, options)
//	d = driver.Intercept(d, driver.Hook(time.Now, record)) // sees what the library sees
//
// # Secrets
//
// A request may hold a secret. No decorator copies any of it into an error or
// into what it reports; a driver must not put any of it into an error, a
// response or a log either.
package driver
