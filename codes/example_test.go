package codes_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/codes"
)

// A driver says what failed. Its caller finds the code through every wrapping.
func Example() {
	refused := errors.New("status 403: cores 64 of 64")
	err := error(codes.Wrap(codes.ResourceExhausted, refused, "no cores are left in zone b"))
	fmt.Println(codes.Message(err))

	err = fmt.Errorf("machine m-1: %w", err)
	fmt.Println(err)

	code := codes.Of(err)
	recovery := codes.RecoveryFor(codes.CreateMachine, code)
	fmt.Println(code, recovery.AutoRetry, recovery.Class, recovery.Remedy)
	fmt.Println(recovery.Backoff(1, 30*time.Minute))
	// Output:
	// no cores are left in zone b
	// machine m-1: ResourceExhausted: no cores are left in zone b: status 403: cores 64 of 64
	// ResourceExhausted false quota raise-quota
	// 30m0s
}

// Text in a message is only text.
func ExampleOf() {
	fmt.Println(codes.Of(nil))
	fmt.Println(codes.Of(errors.New("code = [NotFound]")))
	fmt.Println(codes.Of(errors.Join(errors.New("x"), codes.New(codes.NotFound, "no VM [m-1]"))))
	// Output:
	// OK
	// Unknown
	// NotFound
}

func ExampleParse() {
	for _, s := range []string{"PRECONDITION_FAILED", "FailedPrecondition", "failed precondition"} {
		code, ok := codes.Parse(s)
		fmt.Println(code, code.Contract(), ok)
	}
	// Output:
	// FailedPrecondition PRECONDITION_FAILED true
	// FailedPrecondition PRECONDITION_FAILED true
	// Unknown UNKNOWN false
}

func ExampleRetryClass_Backoff() {
	for failures := 1; failures <= 7; failures++ {
		fmt.Print(codes.Short.Backoff(failures, 0), " ")
	}
	fmt.Println()
	// Output: 5s 10s 20s 40s 1m20s 2m40s 3m0s
}
