package lead_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/lead"
)

// silentOnce is a lease nobody else wants, whose first renewal has no answer.
type silentOnce struct {
	terms, renewals atomic.Int64
	renewed         chan struct{}
}

func (l *silentOnce) Take(context.Context, string, time.Duration) (lead.Token, error) {
	return lead.Token(l.terms.Add(1)), nil
}

func (l *silentOnce) Renew(ctx context.Context, _ lead.Token, _ time.Duration) error {
	switch l.renewals.Add(1) {
	case 1:
		<-ctx.Done()
		return ctx.Err()
	case 2:
		<-time.After(20 * time.Millisecond) // an answer takes its time
	case 3:
		close(l.renewed)
	}
	return nil
}

func (l *silentOnce) Release(context.Context, lead.Token) error { return nil }

func (l *silentOnce) Wait(context.Context) error { return nil }

// TestRenewalWithoutAnswer: one renewal without an answer does not end a term: there is time for another one.
func TestRenewalWithoutAnswer(t *testing.T) {
	l := &silentOnce{renewed: make(chan struct{})}
	require.NoError(t, lead.Run(t.Context(), l, lead.Options{ID: "a", TTL: 2 * time.Second}, func(term *lead.Held) error {
		select {
		case <-term.Context().Done():
			return context.Cause(term.Context())
		case <-l.renewed:
			return term.Err()
		}
	}))
	require.EqualValues(t, 1, l.terms.Load())
}
