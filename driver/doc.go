// Package driver is the port through which the library creates, looks up and
// deletes machines at a provider.
//
// A driver implements [Driver] for one provider. One that supports only some
// of the calls embeds [Unimplemented]; what it can promise beyond the calls, it
// declares by the optional interfaces [FieldUpdater] and [IDMatcher].
//
// Errors carry one of the codes of package codes, built with codes.New or
// codes.Wrap; the library reads them with codes.Of through any wrapping.
// Package drivertest tries whether a driver keeps the duties stated here.
//
// A provider that manages machines in groups implements [PoolDriver] too, or
// instead; [UnimplementedPool], [PoolFeatures] and the decorators whose names end
// in Pool are to it what those above are to a Driver.
//
// # Decorators
//
// [Validate], [Limit], [Deadline], [Recover] and [Hook] wrap any driver and can
// be combined in any order; [Around] is what to write another one with. Each
// has a method Unwrap() Driver, by which [As] finds what a driver declares. A
// useful order, from the inside out:
//
//	d = driver.Recover(d, report)        // a panic ends one call only
//	d = driver.Deadline(d, timeouts)     // counts from the start of the call,
//	d = driver.Limit(d, limits)          // not from the start of the wait for it
//	d = driver.Validate(d, options)
//	d = driver.Hook(d, time.Now, record) // sees what the library sees
//
// # Secrets
//
// A request may hold a secret. No decorator copies any of it into an error or
// into what it reports; a driver must not put any of it into an error, a
// response or a log either.
package driver
