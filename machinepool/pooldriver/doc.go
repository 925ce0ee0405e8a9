// Package pooldriver is the port through which the library creates, changes and deletes groups of
// machines at a provider that manages each group as one. Package machinepool decides which calls are
// made; the manager makes them.
//
// A driver implements [Driver] for one provider, and may be a driver.Driver too. A driver that
// supports only some of the calls embeds [UnimplementedPools]. It declares optional calls by
// [Featured] and [Lister]. Package pooldrivertest checks whether a driver meets the duties stated
// here, and has a provider in memory.
//
// Codes, secrets and interceptors are those of package driver: [Intercept] takes the same ones, and
// a driver.Limit that is shared counts calls for machines and groups together. [Validate] holds
// requests and answers to the same bounds.
package pooldriver
