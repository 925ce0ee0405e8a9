// Package conformance is what suites are made of that try whether a driver keeps
// its duties: driver/drivertest is one, machinepool/pooldriver/pooldrivertest
// another. A suite is a list of [Check]; [Run] runs them as subtests. A [Trial] is
// one check's time with a driver: each [Call] in it is watched.
//
// [Outcomes] and [Judge] try the suite itself, with drivers that are broken.
package conformance
