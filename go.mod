module github.com/millwright-go/millwright

go 1.25.0

require (
	github.com/qmuntal/stateless v1.7.2
	github.com/stretchr/testify v1.12.1
	pgregory.net/rapid v1.3.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
