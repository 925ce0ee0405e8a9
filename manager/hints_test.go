package manager

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/orphan"
)

// Of machines that disappear the first counts until its class was asked for, of
// one with several VMs the last answer; a class that is gone needs no look.
func TestHints(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1_800_000_000+int64(s), 0) }
	small, large := object.Key{Name: "small"}, object.Key{Name: "large"}
	classes := map[object.Key]orphan.Class{small: {Key: small, Asked: at(0)}}
	var h hints
	for s := range 3 {
		h.add(orphan.Hint{Class: small, At: at(s)})
		h.add(orphan.Hint{Class: small, At: at(s), Several: "web-1"})
		h.add(orphan.Hint{Class: small, At: at(s), Several: "web-2"})
		h.add(orphan.Hint{Class: large, At: at(s)})
	}
	require.Equal(t, []orphan.Hint{
		{Class: small, At: at(0)}, {Class: small, At: at(2), Several: "web-1"}, {Class: small, At: at(2), Several: "web-2"},
	}, h.open(classes), "asked for at that moment is not asked for since")
	classes[small] = orphan.Class{Key: small, Asked: at(1)}
	require.Len(t, h.open(classes), 2)
	classes[small] = orphan.Class{Key: small, Asked: at(3)}
	classes[large] = orphan.Class{Key: large}
	require.Empty(t, h.open(classes), "dropped for good")
	h.add(orphan.Hint{Class: small, At: at(4)})
	require.Len(t, h.open(classes), 1)
}
