package drain

import (
	"strings"
	"time"

	"github.com/millwright-go/millwright/object"
)

// Volume is a persistent volume that is bound to a claim.
type Volume struct {
	Name   string     // of the persistent volume
	Claim  object.Key // that it is bound to
	Driver string     // that attaches it
	Handle string     // the driver's own name of it; opaque
	// Local: the volume is part of the node. It can't be detached, and the drain does not wait for
	// it.
	Local bool
}

// Attachment is the attachment of a volume to a node, done or wanted (VolumeAttachment of
// storage.k8s.io/v1).
type Attachment struct {
	Name     string // of the attachment itself
	Volume   string // name of the persistent volume
	Node     string
	Attached bool // as the attacher last said
	// DeletedAt is when its deletion was asked for. Zero: it was not.
	DeletedAt time.Time
}

// sameHandle reports whether an ID of a node or a provider for a volume means the handle of that
// tail. They must be equal after the last '^' or '/', because nodes and providers put other text
// around the handle. Neither is a pattern, and an empty one matches nothing.
func sameHandle(id, tail string) bool {
	if tail == "" || !strings.HasSuffix(id, tail) {
		return false
	}
	before := len(id) - len(tail)
	return before == 0 || id[before-1] == '^' || id[before-1] == '/'
}

func tailOf(handle string) string { return handle[strings.LastIndexAny(handle, "^/")+1:] }
