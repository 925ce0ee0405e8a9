package sim

import (
	"context"
	"time"
)

// Sleep lets time pass in the world, for a driver that waits: give it to the driver in place of
// time.Sleep. It returns before that with the error of ctx, which is the call's or one made from it, if
// that ends. Outside of a call of the driver it does not wait.
func (w *World) Sleep(ctx context.Context, d time.Duration) error { return w.ownCalls.sleep(ctx, d) }

// Request makes one request of a driver to its provider, which do carries out. As often as Faults say, it
// is late, fails before it is carried out or loses its answer, hangs until ctx ends, or the manager dies
// in it. ctx is that of the driver's call, or one made from it. what names the request in traces.
//
// It is for the provider of a driver that the world does not know, such as the fake of a client library.
// World.Provider and Transport make their requests in the same way. While do runs, nothing else in the
// world does. Outside of a call of the driver it just calls do.
func (w *World) Request(ctx context.Context, what string, do func(context.Context) error) error {
	return w.ownCalls.request(ctx, &request{
		what: what, carryOut: func() error { return do(ctx) },
		refusal: func() error {
			if w.fails() {
				return ErrRefused
			}
			return nil
		},
		lost: func() error { return ErrAnswerLost },
	})
}
