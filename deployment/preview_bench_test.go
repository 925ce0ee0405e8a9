package deployment_test

import (
	"context"
	"testing"
	"time"

	"github.com/millwright-go/millwright/deployment"
)

// BenchmarkPreview: 1,000 machines replaced one at a time.
func BenchmarkPreview(b *testing.B) {
	d, sets := rolling(1000)
	model := deployment.Model{Create: 90 * time.Second, Delete: 30 * time.Second}
	b.ReportAllocs()
	for b.Loop() {
		if timeline, err := deployment.Preview(context.Background(), d, sets, model); err != nil || !timeline.Complete {
			b.Fatal(err, timeline.Ending)
		}
	}
}
