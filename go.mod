module github.com/millwright-go/millwright

go 1.25.0

require (
	github.com/qmuntal/stateless v1.7.2
	github.com/stretchr/testify v1.12.1
	go.etcd.io/bbolt v1.5.0
	go.yaml.in/yaml/v3 v3.0.5
	golang.org/x/sys v0.46.0
	golang.org/x/term v0.44.0
	pgregory.net/rapid v1.3.0
)
