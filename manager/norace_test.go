//go:build !race

package manager_test

// raceDetector reports whether the tests run under it.
const raceDetector = false
