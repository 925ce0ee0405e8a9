//go:build !race

package testkit

// raceDetector reports whether the tests run under the race detector.
const raceDetector = false
