// Package pooldrivertest checks that a driver meets the duties of pooldriver.Driver, and has
// Memory, a provider of groups that lives in memory. It is to pooldriver what drivertest is to
// driver: one cause fails one check, a failure says why its duty matters, and at the end the log says
// how many duties were checked, and why the others were not. Calls overlap in the checks of Concurrent
// only: creates of one pool's group, creates of several, and deletes of one.
package pooldrivertest
