// Package pooldrivertest checks that a driver meets the duties of pooldriver.Driver, and has
// Memory, a provider of groups that lives in memory. It is to pooldriver what drivertest is to
// driver; see there.
package pooldrivertest
