package workload

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
	"github.com/millwright-go/millwright/object"
)

// A volume is a file that one process at a time can lock. A link on a node's desk attaches it to
// that node. It is attached to no other node until the link is gone.

// driverName is that of the driver that attaches volumes.
const driverName = "lockfile"

func claimOf(name string) string  { return "data-" + name }
func volumeOf(name string) string { return "volume-" + name }

// attachment of a volume to a node. What others see of it is replaced, never
// changed.
type attachment struct{ *drain.Attachment }

// moveVolumes attaches volumes to nodes whose tasks need them, and detaches them from nodes whose
// tasks don't.
func (w *Workload) moveVolumes(now time.Time) error {
	for _, a := range slices.Clone(w.volumes) {
		if a.DeletedAt.IsZero() && !w.needed(a) {
			a.release(now)
		}
		if a.DeletedAt.IsZero() {
			continue
		}
		err := w.desk(a.Node).Detach(a.Volume)
		if errors.Is(err, registry.ErrHeld) {
			continue
		}
		if err != nil {
			return err
		}
		w.volumes = slices.DeleteFunc(w.volumes, func(b *attachment) bool { return b == a })
		w.say("%s is detached from %s: no process holds it", a.Volume, a.Node)
		w.changed(a.Node)
	}
	for _, p := range w.pods {
		if err := w.attach(p); err != nil {
			return err
		}
	}
	return nil
}

// needed reports whether a task on the attachment's node uses the volume, and has not
// finished.
func (w *Workload) needed(a *attachment) bool {
	return slices.ContainsFunc(w.pods, func(p *pod) bool {
		return p.app.Volume && !p.Finished && p.node == a.Node && volumeOf(p.Name) == a.Volume
	})
}

// release asks for the end of an attachment.
func (a *attachment) release(now time.Time) {
	if a.DeletedAt.IsZero() {
		going := *a.Attachment
		going.DeletedAt = now
		a.Attachment = &going
	}
}

// attach attaches a task's volume to its node once it is attached nowhere.
func (w *Workload) attach(p *pod) error {
	volume := volumeOf(p.Name)
	if !p.app.Volume || p.node == "" || !p.active() ||
		slices.ContainsFunc(w.volumes, func(a *attachment) bool { return a.Volume == volume }) {
		return nil
	}
	path := filepath.Join(w.options.Volumes, volume)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Close(), w.desk(p.node).Attach(volume, path)); err != nil {
		return err
	}
	w.volumes = append(w.volumes, attached(volume, p.node))
	w.say("%s is attached to %s, for task %s", volume, p.node, p.Name)
	w.changed(p.node)
	return nil
}

// mounted reports whether a task's volume is attached to its node, and stays so.
func (w *Workload) mounted(p *pod) bool {
	return slices.ContainsFunc(w.volumes, func(a *attachment) bool {
		return a.Volume == volumeOf(p.Name) && a.Node == p.node && a.DeletedAt.IsZero()
	})
}

// Bound implements drains.Volumes.
func (w *Workload) Bound(_ context.Context, claims []object.Key) (volumes []*drain.Volume, complete bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pods {
		claim := object.Key{Namespace: Namespace, Name: claimOf(p.Name)}
		if !p.app.Volume || !slices.Contains(claims, claim) {
			continue
		}
		volumes = append(volumes, &drain.Volume{
			Name: volumeOf(p.Name), Claim: claim, Driver: driverName, Handle: volumeOf(p.Name),
		})
	}
	return volumes, w.looked, nil
}

// Attachments implements drains.Volumes.
func (w *Workload) Attachments(_ context.Context, node string, volumes []string) ([]*drain.Attachment, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []*drain.Attachment{}
	for _, a := range w.volumes {
		if a.Node == node || slices.Contains(volumes, a.Volume) {
			all = append(all, a.Attachment)
		}
	}
	return all, nil
}

// Attached implements drains.Volumes: nodes don't say.
func (w *Workload) Attached(context.Context, string) ([]string, error) { return nil, nil }

// Detach implements drains.Volumes.
func (w *Workload) Detach(_ context.Context, name string) (drain.Answer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.volumes {
		if a.Name == name {
			a.release(time.Now())
			return drain.Answer{Result: drain.Accepted}, nil
		}
	}
	return drain.Answer{Result: drain.NotFound}, nil
}
