// Programs that show the library. Their own module, so that no user of the
// library downloads what they need. It is never released.
module github.com/millwright-go/millwright/examples

go 1.25.0

require (
	github.com/millwright-go/millwright v0.0.0-00010101000000-000000000000
	github.com/millwright-go/millwright/adapters/bolt v0.0.0-00010101000000-000000000000
	github.com/stretchr/testify v1.12.1
	go.yaml.in/yaml/v3 v3.0.5
	pgregory.net/rapid v1.3.0
)

require (
	github.com/qmuntal/stateless v1.7.2 // indirect
	go.etcd.io/bbolt v1.5.0 // indirect
	golang.org/x/sys v0.46.0 // indirect
)

replace github.com/millwright-go/millwright => ..

replace github.com/millwright-go/millwright/adapters/bolt => ../adapters/bolt
