module example.org/toykind

go 1.25.0

require (
	github.com/millwright-go/millwright v0.0.0-00010101000000-000000000000
	github.com/stretchr/testify v1.12.1
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect

replace github.com/millwright-go/millwright => ../..
