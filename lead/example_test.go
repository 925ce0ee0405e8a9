package lead_test

import (
	"context"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/lead/leadtest"
)

// A program that leads whenever it can. Here another process leads first, and gives the lease back.
func ExampleRun() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	lease := leadtest.NewMemory() // a program has that of its store, such as remote.DB.Lead
	first, err := lease.Take(ctx, "host-1", time.Minute)
	if err != nil {
		panic(err)
	}
	err = lead.Run(ctx, lease, lead.Options{ID: "host-2", Notify: func(e lead.Event) {
		switch e.Kind {
		case lead.Standby:
			fmt.Println("standby:", e.Err)
			_ = lease.Release(ctx, first)
		case lead.Elected, lead.Released, lead.Lost, lead.Failed:
			fmt.Println(e.Kind)
		}
	}}, func(term *lead.Held) error {
		fmt.Println("acting in term", term.Token())
		stop() // the program ends
		<-term.Context().Done()
		return nil
	})
	fmt.Println("the end:", err)
	// Output:
	// standby: another process leads: host-1
	// Elected
	// acting in term 2
	// Released
	// the end: <nil>
}

// Each change asks the term first.
func ExampleHeld_Err() {
	lease := leadtest.NewMemory()
	now := time.Now()
	o := lead.Options{ID: "host-1", TTL: 12 * time.Second, Now: func() time.Time { return now }}
	ctx, stop := context.WithCancel(context.Background())
	_ = lead.Run(ctx, lease, o, func(term *lead.Held) error {
		defer stop()
		fmt.Println(term.Err())
		now = now.Add(time.Hour) // the machine was suspended
		fmt.Println(term.Err())
		return term.Err()
	})
	// Output:
	// <nil>
	// the lease is lost: it was not renewed for 8s
}

// An election of client-go gives a context alone.
func ExampleOf() {
	ctx, cancel := context.WithCancel(context.Background())
	term := lead.Of(ctx)
	fmt.Println(term.Err())
	cancel()
	fmt.Println(term.Err())
	// Output:
	// <nil>
	// context canceled
}
