package codes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/millwright-go/millwright/codes"
)

func BenchmarkOf(b *testing.B) {
	typed := codes.New(codes.NotFound, "no VM m-1")
	for _, c := range []struct {
		name string
		err  error
	}{
		{"nil", nil},
		{"typed", typed},
		{"wrapped", fmt.Errorf("a: %w", fmt.Errorf("b: %w", typed))},
		{"joined", errors.Join(errors.New("x"), errors.New("y"), typed)},
		{"foreign", &foreign{name: "NotFound"}},
		{"deadline", fmt.Errorf("a: %w", context.DeadlineExceeded)},
		{"plain", errors.New("x")},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				codes.Of(c.err)
			}
		})
	}
}

func BenchmarkRecoveryFor(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		codes.RecoveryFor(codes.CreateMachine, codes.ResourceExhausted)
	}
}
