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

// DefaultOtherManagers are the leases of machine-controller-manager and of its machine controllers in a
// namespace. If the namespace is empty, there are none.
func DefaultOtherManagers(namespace string) []Lease {
	if namespace == "" {
		return nil
	}
	return []Lease{{namespace, "machine-controller-manager"}, {namespace, "machine-controller"}}
}

const (
	leaseReadPeriod  = 2 * time.Second
	leaseReadTimeout = 10 * time.Second
	// defaultLeaseTerm is the duration of a lease that states none.
	defaultLeaseTerm = 15 * time.Second
	// clockSkew is how much clocks may differ: a lease that is read for the first time is expired if
	// its last renewal is older than its duration plus this.
	clockSkew = 5 * time.Minute
)

// otherManagers finds other managers of the same objects by their leases. A manager is alive while
// its lease changes. As in leader election, this process's clock alone measures the time between
// changes.
type otherManagers struct {
	leases []Lease
	client coordinationclient.CoordinationV1Interface
	now    func() time.Time
	period time.Duration
	seen   map[Lease]observedLease
}

// observedLease is the last renewal of a lease, and when it was first seen.
type observedLease struct {
	holder  string
	renewed time.Time
	at      time.Time
}

func newOtherManagers(config *rest.Config, leases []Lease) (*otherManagers, error) {
	client, err := coordinationclient.NewForConfig(config)
	return &otherManagers{leases: leases, client: client, now: time.Now, period: leaseReadPeriod, seen: map[Lease]observedLease{}}, err
}

// alive describes the first other manager that is alive, or returns "".
func (r *otherManagers) alive(ctx context.Context) (string, error) {
	for _, lease := range r.leases {
		limited, done := context.WithTimeout(ctx, leaseReadTimeout)
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

// holder returns the holder of a lease if it is alive, or "".
func (r *otherManagers) holder(lease Lease, spec *coordinationv1.LeaseSpec) string {
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil {
		delete(r.seen, lease)
		return ""
	}
	term := defaultLeaseTerm
	if spec.LeaseDurationSeconds != nil && *spec.LeaseDurationSeconds > 0 {
		term = time.Duration(*spec.LeaseDurationSeconds) * time.Second
	}
	now := r.now()
	known, seenBefore := r.seen[lease]
	if !seenBefore || known.holder != *spec.HolderIdentity || !known.renewed.Equal(spec.RenewTime.Time) {
		if !seenBefore && now.Sub(spec.RenewTime.Time) > term+clockSkew {
			return ""
		}
		known = observedLease{holder: *spec.HolderIdentity, renewed: spec.RenewTime.Time, at: now}
		r.seen[lease] = known
	}
	if now.Sub(known.at) > term {
		return ""
	}
	return known.holder
}

// runAlone calls run while no other manager is alive. When another manager appears, it cancels run,
// waits until that manager is gone, and calls run again. It returns when ctx has ended, or with the
// error of run.
func (r *otherManagers) runAlone(ctx context.Context, log *slog.Logger, run func(context.Context) error) error {
	if len(r.leases) == 0 {
		return run(ctx)
	}
	for logged := ""; ctx.Err() == nil; {
		other, err := r.alive(ctx)
		switch {
		case err != nil:
			log.Warn("cannot read the leases of other managers: nothing is done", slog.String("error", err.Error()))
		case other != "":
			if other != logged {
				log.Error("another manager is alive: nothing is done", slog.String("other", other))
			}
			logged = other
		default:
			if logged != "" {
				log.Info("no other manager is alive any more: starting", slog.String("other", logged))
			}
			logged = ""
			if err := r.runUntilOther(ctx, log, run); err != nil {
				return err
			}
			continue
		}
		wait(ctx, r.period)
	}
	return ctx.Err()
}

// runUntilOther calls run, and cancels it when another manager is alive. If the API server does not
// answer, run continues: it freezes the fleet by itself.
func (r *otherManagers) runUntilOther(ctx context.Context, log *slog.Logger, run func(context.Context) error) error {
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
		other, err := r.alive(within)
		if err != nil || other == "" {
			continue
		}
		log.Error("another manager has come: what is under way is ended", slog.String("other", other))
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
