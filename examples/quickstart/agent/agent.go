package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/heartbeat"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/procid"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
)

const (
	lifetime = 4 * time.Minute // no agent lives longer, whatever happens
	interval = 200 * time.Millisecond
	patience = 2 * time.Second // how long it waits for its seat
)

// Exit statuses of an agent.
const (
	exitDone    = 0
	exitFailed  = 1
	exitMisused = 64
	exitTurned  = 75
)

// Why an agent ends.
var (
	errTold     = errors.New("told to end")
	errAlone    = errors.New("the program that started it is gone")
	errLifetime = errors.New("its longest lifetime is over")
	errUnwanted = errors.New("it is not on record any more")
)

// Main is an agent's life. It returns the exit status.
func Main() int {
	order, err := readOrder()
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		return exitMisused
	}
	a := &agent{Order: order, dir: registry.At(order.Registry)}
	if err := a.live(); err != nil {
		fmt.Fprintf(os.Stderr, "agent of machine %s: %v\n", order.Machine, err)
		if errors.Is(err, registry.ErrSuperseded) || errors.Is(err, registry.ErrHeld) {
			return exitTurned
		}
		return exitFailed
	}
	return exitDone
}

type agent struct {
	Order
	dir *registry.Dir
	id  procid.ID
}

// live enters the ledger before anything else, then takes the seat.
func (a *agent) live() error {
	var err error
	if a.id, err = procid.Self(); err != nil {
		return err
	}
	if err := a.enter(ledger.Born, ""); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP) // a terminal's, meant for the program
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		<-told
		cancel(errTold)
	}()
	ctx, over := context.WithTimeoutCause(ctx, lifetime, errLifetime)
	defer over()

	report := os.NewFile(ReportFD, "report")
	defer func() { _ = report.Close() }()
	seat, err := a.sit(ctx)
	if err != nil {
		_, _ = fmt.Fprintln(report, ReportTurned)
		return errors.Join(err, a.enter(ledger.Turned, err.Error()))
	}
	defer seat.Release()
	if err := a.enterSeated(); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(report, ReportSeated)
	_ = report.Close()

	joins := make(chan heartbeat.Join, 1)
	go func() { cancel(listen(os.Stdin, joins)) }()
	return a.work(ctx, joins)
}

func (a *agent) enter(event ledger.Event, note string) error {
	if a.Ledger == "" {
		return nil
	}
	return ledger.Append(a.Ledger, ledger.Entry{
		Event: event, Machine: a.Machine, Instance: a.Instance, ID: a.id, At: time.Now(), Note: note,
	})
}

// sit takes the machine's seat, or says why it must not.
func (a *agent) sit(ctx context.Context) (*registry.Lock, error) {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	seat, err := a.dir.Occupy(within, registry.Record{Machine: a.Machine, Instance: a.Instance}, a.id)
	if errors.Is(err, context.DeadlineExceeded) {
		err = registry.ErrHeld
	}
	return seat, err
}

// enterSeated enters that the seat is taken, and every other process of this
// machine that the ledger knows and the process table shows alive right now.
func (a *agent) enterSeated() error {
	if err := a.enter(ledger.Seated, ""); err != nil || a.Ledger == "" {
		return err
	}
	others, err := ledger.Open(a.Ledger).Alive()
	if err != nil {
		return err
	}
	for _, other := range others {
		if other.Machine == a.Machine && other.Instance != a.Instance && other.ID.Alive() {
			err = errors.Join(err, a.enter(ledger.Overlap, other.Instance))
		}
	}
	return err
}

// listen reads the letter and then waits for the end of input, which comes when
// nobody holds the other end any more. It returns why the agent must end.
func listen(input io.Reader, joins chan<- heartbeat.Join) error {
	reader := bufio.NewReader(input)
	line, err := reader.ReadBytes('\n')
	if err != nil {
		return errAlone
	}
	var l letter
	if json.Unmarshal(line, &l) == nil {
		if join, ok := heartbeat.ParseJoin(l.UserData); ok {
			joins <- join
		}
	}
	_, _ = io.Copy(io.Discard, reader)
	return errAlone
}

// work boots, and sends heartbeats once it knows where to. Without that it is
// up all the same: a machine that joins no cluster.
func (a *agent) work(ctx context.Context, joins <-chan heartbeat.Join) error {
	boot := time.NewTimer(a.Boot)
	defer boot.Stop()
	select {
	case <-ctx.Done():
		return ending(ctx)
	case <-boot.C:
	}
	if err := a.enter(ledger.Serving, ""); err != nil {
		return err
	}
	stop, err := a.runTasks(ctx)
	if err != nil {
		return err
	}
	defer stop()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var sender *heartbeat.Sender
	for {
		select {
		case <-ctx.Done():
			return ending(ctx)
		case join := <-joins:
			var err error
			if sender, err = heartbeat.NewSender(join, a.ProviderID); err != nil {
				return err
			}
		case <-ticker.C:
			if !a.wanted() {
				return errUnwanted
			}
		}
		if sender != nil {
			_ = sender.Send(interval) // one that is lost is followed by the next
		}
	}
}

// wanted tells whether the machine's record still names this process. Where it
// can't be read, nothing follows.
func (a *agent) wanted() bool {
	wanted, err := a.dir.Wanted(registry.Record{Machine: a.Machine, Instance: a.Instance})
	return wanted || err != nil
}

// ending is what an agent returns when its context has ended: nil for an end
// that somebody asked for.
func ending(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, errTold) {
		return err
	}
	return nil
}
