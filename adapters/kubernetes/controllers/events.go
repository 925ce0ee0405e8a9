package controllers

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"
	clientevents "k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"

	poolsv1alpha1 "github.com/millwright-go/millwright/adapters/kubernetes/api/pools/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/apistore"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// longestNote bounds the text of an event, because an API server accepts no longer one.
const longestNote = 1024

// reporter is the name under which events are reported.
const reporter = "millwright"

// events reports to the API server what the reconcilers report.
type events struct {
	broadcaster clientevents.EventBroadcaster
	recorder    clientevents.EventRecorder
	stores      *stores
	silent      bool // if nothing may be written
}

func newEvents(mgr ctrl.Manager, silent bool) (*events, error) {
	client, err := eventsv1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	b := clientevents.NewBroadcaster(eachText{&clientevents.EventSinkImpl{Interface: client}})
	return &events{broadcaster: b, recorder: b.NewRecorder(mgr.GetScheme(), reporter), silent: silent}, nil
}

// start has events reported until the context ends or what it returns is called.
func (e *events) start(ctx context.Context) (stop func()) {
	if !e.silent {
		if err := e.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
			panic(err) // it fails for a nil sink only
		}
	}
	return e.broadcaster.Shutdown
}

// endOfField ends the path of a field in the subject of an event. What follows is the event's text.
const endOfField = "\x00"

// eachText is a sink of events in which every text is an event of its own. Without it events of one
// object and reason count as repetitions of the first, and have its text. What tells them apart must be
// in their subject, so record puts the text there, and eachText takes it off.
type eachText struct{ clientevents.EventSink }

// Create implements clientevents.EventSink.
func (s eachText) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	field, _, _ := strings.Cut(event.Regarding.FieldPath, endOfField)
	event.Regarding.FieldPath = field
	return s.EventSink.Create(ctx, event)
}

// record reports a text about an object, or about the field of it that ref names.
func (e *events) record(ref *corev1.ObjectReference, typ manager.EventType, reason, action, text string) {
	if len(text) > longestNote {
		text = strings.ToValidUTF8(text[:longestNote], "")
	}
	ref.FieldPath += endOfField + text
	e.recorder.Eventf(ref, nil, string(typ), reason, action, "%s", text)
}

func (e *events) hooks() manager.Hooks { return manager.Hooks{Event: e.tell} }

func (e *events) tell(kind manager.Kind, key object.Key, typ manager.EventType, reason, why string) {
	ref := e.about(kind, key)
	if ref != nil {
		e.record(ref, typ, reason, action(kind), why)
	}
}

// unreadable is the reason of an event about a field that can't be read.
const unreadable = "Unreadable"

// kinds are the names of kinds in errors about fields, which are the codecs' names or the server's.
var kinds = map[string]manager.Kind{
	"machine": manager.KindMachine, "machines": manager.KindMachine,
	"set": manager.KindSet, "machinesets": manager.KindSet,
	"deployment": manager.KindDeployment, "machinedeployments": manager.KindDeployment,
	"class": manager.KindClass, "machineclasses": manager.KindClass,
	"secret": manager.KindSecret, "secrets": manager.KindSecret,
	"pool": manager.KindPool, "machinepools": manager.KindPool,
}

// report logs errors behind the caches, and reports fields that can't be read. Each field of an
// object is a subject of its own.
func (e *events) report(log *slog.Logger) func(error) {
	return func(err error) {
		log.Warn("reading objects", slog.String("error", err.Error()))
		var bad *object.FieldError
		if !errors.As(err, &bad) {
			return
		}
		if ref := e.about(kinds[bad.Kind], bad.Key); ref != nil {
			ref.FieldPath = bad.Field
			e.record(ref, manager.Warning, unreadable, "Read", bad.Field+" "+bad.Problem)
		}
	}
}

// action returns what was being done, in the form that events need.
func action(kind manager.Kind) string {
	if kind.Fleet() {
		return "Safety"
	}
	return "Reconcile"
}

// about refers to an object. It returns nil if the object does not exist, if it is not on the server that holds
// the fleet, or if nothing may be reported.
func (e *events) about(kind manager.Kind, key object.Key) *corev1.ObjectReference {
	if e.silent {
		return nil
	}
	ref := &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Namespace: key.Namespace, Name: key.Name}
	switch kind {
	case manager.KindMachine:
		ref.Kind, ref.UID = "Machine", uid(e.stores.machines, key)
	case manager.KindSet:
		ref.Kind, ref.UID = "MachineSet", uid(e.stores.sets, key)
	case manager.KindDeployment:
		ref.Kind, ref.UID = "MachineDeployment", uid(e.stores.deployments, key)
	case manager.KindClass:
		ref.Kind, ref.UID = "MachineClass", uid(e.stores.classes, key)
	case manager.KindSecret:
		ref.APIVersion, ref.Kind, ref.UID = "v1", "Secret", uid(e.stores.secrets, key)
	case manager.KindPool:
		ref.APIVersion, ref.Kind, ref.UID = poolsv1alpha1.GroupVersion.String(), "MachinePool", uid(e.stores.pools, key)
	default:
		return nil
	}
	return ref
}

func uid[T object.Object[T], R apistore.Raw](c *apistore.Collection[T, R], key object.Key) types.UID {
	raw, ok := c.Raw(key)
	if !ok {
		return ""
	}
	return raw.GetUID()
}
