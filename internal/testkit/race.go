//go:build race

package testkit

// raceDetector reports whether the tests run under it.
const raceDetector = true
