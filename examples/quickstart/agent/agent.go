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
	"github.com/millwright-go/millwright/examples/quickstart/life"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
)

const (
	interval = 200 * time.Millisecond
	patience = 2 * time.Second // how long it waits for its seat
)

// These are the reasons why an agent ends.
var (
	errAlone    = errors.New("the program that started it is gone")
	errUnwanted = errors.New("it is not on record any more")
	errNobody   = errors.New("nobody has taken its heartbeats for too long")
)

// Abandonment is how long an agent that outlives the program that started it goes on while its
// heartbeats are not taken. Then it ends. A program that starts within a minute finds its machines.
// The rest of the time is for a cluster that was down before the program was killed, and is down
// again when the next one goes on.
const Abandonment = 90 * time.Second

// Main is an agent's life. It returns the exit status.
func Main() int {
	order, err := readOrder()
	if err != nil {
		return life.Misuse("agent", err)
	}
	a := &agent{Order: order, dir: registry.At(order.Registry)}
	return life.End("agent of machine "+order.Machine, a.live())
}

type agent struct {
	Order
	dir     *registry.Dir
	account ledger.Hand
}

// live enters the ledger before anything else, waits for all it needs, and takes the seat. So a
// process that had the seat goes on even if the program that started it dies, if it is to outlive
// that.
func (a *agent) live() error {
	var err error
	if a.account, err = life.Begin(a.Ledger, a.Machine, a.Instance); err != nil {
		return err
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		<-told
		cancel(life.ErrTold)
	}()
	ctx, over := context.WithTimeoutCause(ctx, life.Longest, life.ErrLongest)
	defer over()
	letters := make(chan letter, 1)
	go func() {
		if err := listen(os.Stdin, letters, a.Outlives); err != nil {
			cancel(err)
		}
	}()

	report := os.NewFile(ReportFD, "report")
	defer func() { _ = report.Close() }()
	seat, sender, err := a.sit(ctx, letters)
	if err != nil {
		_, _ = fmt.Fprintln(report, ReportTurned)
		return errors.Join(err, a.account.Enter(ledger.Turned, err.Error()))
	}
	defer seat.Release()
	if err := a.account.Seated(); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(report, ReportSeated)
	_ = report.Close()

	err = a.work(ctx, sender)
	if errors.Is(err, errNobody) {
		err = errors.Join(err, a.account.Enter(ledger.Abandoned, ""))
	}
	return err
}

// sit waits for the letter and takes the machine's seat, or returns why it must not. Without a
// sender the machine joins no cluster.
func (a *agent) sit(ctx context.Context, letters <-chan letter) (seat *registry.Lock, sender *heartbeat.Sender, err error) {
	select {
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	case l := <-letters:
		if join, ok := heartbeat.ParseJoin(l.UserData); ok {
			if sender, err = heartbeat.NewSender(join, a.ProviderID); err != nil {
				return nil, nil, err
			}
		}
	}
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	seat, err = a.dir.Occupy(within, registry.Record{Machine: a.Machine, Instance: a.Instance}, a.account.ID)
	if errors.Is(err, context.DeadlineExceeded) {
		err = registry.ErrHeld
	}
	return seat, sender, err
}

// listen reads the letter and then waits for the end of input, which comes when no process holds
// the other end any more. It returns why the agent must end, or nil if it may outlive that.
func listen(input io.Reader, letters chan<- letter, outlives bool) error {
	reader := bufio.NewReader(input)
	line, err := reader.ReadBytes('\n')
	if err != nil {
		return errAlone
	}
	var l letter
	_ = json.Unmarshal(line, &l) // an unreadable one says nothing
	letters <- l
	_, _ = io.Copy(io.Discard, reader)
	if outlives {
		return nil
	}
	return errAlone
}

// work boots, and sends heartbeats if it knows where to. A machine that joins no cluster is up
// without them.
func (a *agent) work(ctx context.Context, sender *heartbeat.Sender) error {
	boot := time.NewTimer(a.Boot)
	defer boot.Stop()
	select {
	case <-ctx.Done():
		return ending(ctx)
	case <-boot.C:
	}
	if err := a.account.Enter(ledger.Serving, ""); err != nil {
		return err
	}
	stop, err := a.runTasks(ctx)
	if err != nil {
		return err
	}
	defer stop()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	taken := time.Now() // when a heartbeat was last taken
	for {
		if sender != nil && sender.Send(interval) == nil { // one that is lost is followed by the next
			taken = time.Now()
		}
		switch {
		case a.Outlives && time.Since(taken) > a.abandonment():
			return errNobody
		case !a.wanted():
			return errUnwanted
		}
		select {
		case <-ctx.Done():
			return ending(ctx)
		case <-ticker.C:
		}
	}
}

// wanted reports whether the machine's record still names this process. An unreadable record proves
// nothing.
func (a *agent) wanted() bool {
	wanted, err := a.dir.Wanted(registry.Record{Machine: a.Machine, Instance: a.Instance})
	return wanted || err != nil
}

// ending returns an agent's result when its context has ended: nil for a requested end.
func ending(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, life.ErrTold) {
		return err
	}
	return nil
}
