// Package safetytest holds what the tests of the packages below safety share: journals of stories
// and their files, generators of objects, and the checks that every decision has to pass.
package safetytest
