package driver_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machinepool"
)

// Calls for machines and for pools wait for each other where they share a limit.
func TestLimiterIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := driver.NewLimiter(driver.Limits{Concurrency: 1})
		under, most := 0, 0
		step := func(ctx context.Context, next func(context.Context) error) error {
			under++
			most = max(most, under)
			<-time.After(time.Second)
			under--
			return next(ctx)
		}
		machines := shared.Driver(driver.Around(driver.Unimplemented{}, func(ctx context.Context, _ driver.Subject, next func(context.Context) error) error {
			return step(ctx, next)
		}))
		pools := shared.PoolDriver(driver.AroundPool(driver.UnimplementedPool{}, func(ctx context.Context, _ driver.PoolSubject, next func(context.Context) error) error {
			return step(ctx, next)
		}))
		began := time.Now()
		for range 2 {
			go func() { _, _ = machines.ListMachines(t.Context(), &driver.ListMachinesRequest{}) }()
			go func() { _, _ = askPool(t.Context(), pools, machinepool.ScalePool, &wholeAsk) }()
		}
		synctest.Wait()
		if _, err := askPool(t.Context(), pools, machinepool.GetPoolStatus, &wholeAsk); codes.Of(err) != codes.Unimplemented {
			t.Errorf("the last in line is answered %v", err)
		}
		if took := time.Since(began); most != 1 || took != 5*time.Second {
			t.Errorf("%d calls at once, five took %s", most, took)
		}
	})
}

// Whose turn does not come in time is not called, and says so.
func TestLimitedPoolsGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := driver.NewLimiter(driver.Limits{Interval: time.Minute, Now: time.Now, After: time.After}).PoolDriver(driver.UnimplementedPool{})
		if _, err := askPool(t.Context(), d, machinepool.ScalePool, &wholeAsk); codes.Of(err) != codes.Unimplemented {
			t.Errorf("the first call is answered %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := askPool(ctx, d, machinepool.ScalePool, &wholeAsk)
		if codes.Of(err) != codes.DeadlineExceeded || codes.Message(err) == "" {
			t.Errorf("the second is answered %v", err)
		}
	})
	clockless := driver.NewLimiter(driver.Limits{Interval: time.Minute}).PoolDriver(driver.UnimplementedPool{})
	if _, err := askPool(t.Context(), clockless, machinepool.ScalePool, &wholeAsk); codes.Of(err) != codes.Internal {
		t.Errorf("an interval without a clock is answered %v", err)
	}
	single := driver.NewLimiter(driver.Limits{Calls: []codes.Call{codes.CreateMachine}, Interval: time.Minute}).PoolDriver(driver.UnimplementedPool{})
	if _, err := askPool(t.Context(), single, machinepool.ScalePool, &wholeAsk); codes.Of(err) != codes.Unimplemented {
		t.Errorf("a limit of another call is answered %v", err)
	}
}
