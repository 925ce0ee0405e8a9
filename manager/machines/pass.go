package machines

import (
	"log/slog"
	"sync"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/safety"
)

type reconciler struct {
	Config
	secrets secrets.Secrets
	// recorded is when the VMs of machines were recorded. To lose it makes a span longer.
	recorded engine.Notes[time.Time]
	// written is what was written to the nodes of machines, so that another program that undoes it is
	// noticed.
	written engine.Notes[machine.NodeWrites]
	// uninitialized holds the names of providers known to have no InitializeMachine.
	uninitialized sync.Map
	answers       engine.Notes[answers]
	turns         turns
	paces         paces
	// spent is the brake's memory of machines without a set that followed their nodes.
	alone sync.Mutex
	spent []safety.Spent
}

func newReconciler(c Config) *reconciler {
	return &reconciler{Config: c, secrets: secrets.Secrets{Collection: c.Secrets, Namespaces: c.SecretNamespaces}}
}

// pass is one pass over one machine.
type pass struct {
	*engine.Pass
	*reconciler
	o     machine.Observation
	plan  machine.Plan
	token Token // of the machine, once this pass has made sure of it
	mute  muted

	turn   bool      // the pace of the provider lets this pass make its next call
	slowed bool      // the provider asked to wait, in answer to the call of the last effect
	began  time.Time // when that effect began

	taken answers // from the pass before; zero: none

	scratch *machine.Machine // what is handed to the store; nil: nothing was yet
}

// muted says, in a dry run, which calls would not be made at all: they are answered without.
type muted struct{ any, create bool }

// logAttrs names a machine in a log line.
func logAttrs(m *machine.Machine) slog.Attr {
	return slog.Group("machine", slog.String("name", m.Key.String()), slog.String("node", m.Spec.NodeName),
		slog.String("providerID", m.Spec.ProviderID), slog.String("stage", string(m.Status.LastOperation.Stage)))
}
