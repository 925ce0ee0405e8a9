module github.com/millwright-go/millwright/adapters/bolt

go 1.25.0

require (
	github.com/millwright-go/millwright v0.0.0-00010101000000-000000000000
	github.com/stretchr/testify v1.12.1
	go.etcd.io/bbolt v1.5.0
	pgregory.net/rapid v1.3.0
)

require (
	github.com/qmuntal/stateless v1.7.2 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.46.0 // indirect
)

replace github.com/millwright-go/millwright => ../..
