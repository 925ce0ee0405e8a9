package controllers

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
)

// Lease names a lease by which managers elect a leader.
type Lease struct{ Namespace, Name string }

// DefaultRivals are the leases of machine-controller-manager and of its machine controllers in a
// namespace. If the namespace is empty, there are none.
func DefaultRivals(namespace string) []Lease {
	if namespace == "" {
		return nil
	}
	return []Lease{{namespace, "machine-controller-manager"}, {namespace, "machine-controller"}}
}

// These are the times between looks at rivals.
const (
	rivalPeriod = 2 * time.Second // between two looks
	rivalTime   = 10 * time.Second
	// rivalTerm is the term of a lease that states none.
	rivalTerm = 15 * time.Second
	// rivalSkew is how much clocks may differ: a lease that was not renewed for that long beyond
	// its term is dead at first sight.
	rivalSkew = 5 * time.Minute
)

// rivals are other managers of the same objects. They use the test of leader election: a rival is
// alive if its lease changes, measured by the own clock alone.
type rivals struct {
	leases []Lease
	client coordinationclient.CoordinationV1Interface
	now    func() time.Time
	period time.Duration
	seen   map[Lease]sighting
}

// sighting is a renewal of a lease, and when it was first seen.
type sighting struct {
	holder  string
	renewed time.Time
	at      time.Time
}

func newRivals(config *rest.Config, leases []Lease) (*rivals, error) {
	client, err := coordinationclient.NewForConfig(config)
	return &rivals{leases: leases, client: client, now: time.Now, period: rivalPeriod, seen: map[Lease]sighting{}}, err
}

// alive describes the first rival that is alive. It returns nothing if none is.
func (r *rivals) alive(ctx context.Context) (string, error) {
	for _, lease := range r.leases {
		limited, done := context.WithTimeout(ctx, rivalTime)
		stored, err := r.client.Leases(lease.Namespace).Get(limited, lease.Name, metav1.GetOptions{})
		done()
		switch {
		case apierrors.IsNotFound(err):
			delete(r.seen, lease)
			continue
		case err != nil:
			return "", fmt.Errorf("look for another manager: lease %s/%s: %w", lease.Namespace, lease.Name, err)
		}
		if holder := r.holder(lease, &stored.Spec); holder != "" {
			return fmt.Sprintf("%q holds lease %s/%s", holder, lease.Namespace, lease.Name), nil
		}
	}
	return "", nil
}

// holder returns the holder of a lease if it is alive, or nothing.
func (r *rivals) holder(lease Lease, spec *coordinationv1.LeaseSpec) string {
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil {
		delete(r.seen, lease)
		return ""
	}
	term := rivalTerm
	if spec.LeaseDurationSeconds != nil && *spec.LeaseDurationSeconds > 0 {
		term = time.Duration(*spec.LeaseDurationSeconds) * time.Second
	}
	now := r.now()
	known, before := r.seen[lease]
	if !before || known.holder != *spec.HolderIdentity || !known.renewed.Equal(spec.RenewTime.Time) {
		if !before && now.Sub(spec.RenewTime.Time) > term+rivalSkew {
			return ""
		}
		known = sighting{holder: *spec.HolderIdentity, renewed: spec.RenewTime.Time, at: now}
		r.seen[lease] = known
	}
	if now.Sub(known.at) > term {
		return ""
	}
	return known.holder
}

// unless runs something while no rival is alive, and ends it as soon as one is. It then waits until
// the rival is gone. It returns when ctx has ended, or with the error of what it ran.
func (r *rivals) unless(ctx context.Context, log *slog.Logger, run func(context.Context) error) error {
	if len(r.leases) == 0 {
		return run(ctx)
	}
	for told := ""; ctx.Err() == nil; {
		rival, err := r.alive(ctx)
		switch {
		case err != nil:
			log.Warn("it is not known whether another manager is alive: nothing is done", slog.String("error", err.Error()))
		case rival != "":
			if rival != told {
				log.Error("another manager is alive: nothing is done", slog.String("rival", rival))
			}
			told = rival
		default:
			if told != "" {
				log.Info("no other manager is alive any more: going on", slog.String("rival", told))
			}
			told = ""
			if err := r.while(ctx, log, run); err != nil {
				return err
			}
			continue
		}
		wait(ctx, r.period)
	}
	return ctx.Err()
}

// while runs something until it sees a rival. It returns nil if it saw one. An API server that does
// not answer is no rival, because what runs freezes by itself.
func (r *rivals) while(ctx context.Context, log *slog.Logger, run func(context.Context) error) error {
	within, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- run(within) }()
	for {
		select {
		case err := <-ended:
			return err
		case <-time.After(r.period):
		}
		rival, err := r.alive(within)
		if err != nil || rival == "" {
			continue
		}
		log.Error("another manager has come: what is under way is ended", slog.String("rival", rival))
		stop()
		<-ended
		log.Info("all that was under way has ended")
		return ctx.Err()
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
