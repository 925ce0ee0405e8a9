package preview_test

import (
	"context"
	"testing"
	"time"

	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/preview"
)

// BenchmarkPreview previews a rollout that replaces 1,000 machines one at a time.
func BenchmarkPreview(b *testing.B) {
	d, sets := rolling(1000)
	model := preview.Model{Create: 90 * time.Second, Delete: 30 * time.Second}
	b.ReportAllocs()
	for b.Loop() {
		if timeline, err := sim.Preview(context.Background(), d, sets, model); err != nil || !timeline.Complete {
			b.Fatal(err, timeline.Ending)
		}
	}
}
