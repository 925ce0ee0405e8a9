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

// longestNote is the maximum length of an event's text that an API server accepts, in bytes.
const longestNote = 1024

// reporter is the name under which events are reported.
const reporter = "millwright"

// events creates events on the API server for what the reconcilers report.
type events struct {
	broadcaster clientevents.EventBroadcaster
	recorder    clientevents.EventRecorder
	stores      *stores
	silent      bool // a dry run: nothing is written
}

func newEvents(mgr ctrl.Manager, silent bool) (*events, error) {
	client, err := eventsv1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	b := clientevents.NewBroadcaster(eachText{&clientevents.EventSinkImpl{Interface: client}})
	return &events{broadcaster: b, recorder: b.NewRecorder(mgr.GetScheme(), reporter), silent: silent}, nil
}

// start writes events until the context ends or stop is called.
func (e *events) start(ctx context.Context) (stop func()) {
	if !e.silent {
		if err := e.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
			panic(err) // it fails for a nil sink only
		}
	}
	return e.broadcaster.Shutdown
}

// endOfField separates the path of a field from the event's text, in the subject of an event (its
// Regarding); see eachText.
const endOfField = "\x00"

// eachText is a sink that makes each text an event of its own. By itself the broadcaster counts events
// with the same subject and reason as repetitions of the first one, whatever their texts are. So
// record appends the text to the subject, and eachText removes it.
type eachText struct{ clientevents.EventSink }

// Create implements clientevents.EventSink.
func (s eachText) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	field, _, _ := strings.Cut(event.Regarding.FieldPath, endOfField)
	event.Regarding.FieldPath = field
	return s.EventSink.Create(ctx, event)
}

// record reports a text about the object, or the field of it, that ref names. action is what the
// manager was doing: an event must have one.
func (e *events) record(ref *corev1.ObjectReference, typ manager.EventType, reason, action, text string) {
	if len(text) > longestNote {
		text = strings.ToValidUTF8(text[:longestNote], "")
	}
	ref.FieldPath += endOfField + text
	e.recorder.Eventf(ref, nil, string(typ), reason, action, "%s", text)
}

func (e *events) hooks() manager.Hooks { return manager.Hooks{Event: e.onEvent} }

// onEvent leaves out steps of operations: status and log have them, and each event is one more write on the server.
func (e *events) onEvent(kind manager.Kind, key object.Key, typ manager.EventType, reason, why string) {
	if typ == manager.Progress {
		return
	}
	ref := e.reference(kind, key)
	if ref != nil {
		e.record(ref, typ, reason, "Reconcile", why)
	}
}

// unreadable is the reason of an event about a field that can't be read.
const unreadable = "Unreadable"

// kindsByName has the kinds under the names that object.FieldError uses: a codec's name (machine), or
// the resource in the server's paths (machines).
var kindsByName = map[string]manager.Kind{
	"machine": manager.KindMachine, "machines": manager.KindMachine,
	"set": manager.KindSet, "machinesets": manager.KindSet,
	"deployment": manager.KindDeployment, "machinedeployments": manager.KindDeployment,
	"class": manager.KindClass, "machineclasses": manager.KindClass,
	"secret": manager.KindSecret, "secrets": manager.KindSecret,
	"pool": manager.KindPool, "machinepools": manager.KindPool,
}

// report returns a function that logs the errors of the caches, and creates an event for each field
// that can't be read.
func (e *events) report(log *slog.Logger) func(error) {
	return func(err error) {
		log.Warn("reading objects", slog.String("error", err.Error()))
		var bad *object.FieldError
		if !errors.As(err, &bad) {
			return
		}
		if ref := e.reference(kindsByName[bad.Kind], bad.Key); ref != nil {
			ref.FieldPath = bad.Field
			e.record(ref, manager.Warning, unreadable, "Read", bad.Field+" "+bad.Problem)
		}
	}
}

// reference returns a reference to an object, without a UID if the object is not in the cache. It
// returns nil in a dry run, and for kinds without an object on the server that has the machines: nodes,
// workloads, and the kinds of Kind.Fleet.
func (e *events) reference(kind manager.Kind, key object.Key) *corev1.ObjectReference {
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
