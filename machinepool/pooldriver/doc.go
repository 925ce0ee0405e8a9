// Package pooldriver is the port through which the library creates, changes and
// deletes groups of machines at a provider that manages each group as one.
//
// A driver implements [Driver] for one provider, and may be a driver.Driver too. A driver that
// supports only some of the calls embeds [UnimplementedPools]. It declares optional calls by
// [Featured] and [Lister]. Codes, secrets and interceptors are those of package driver: [Intercept]
// takes the same ones.
package pooldriver
