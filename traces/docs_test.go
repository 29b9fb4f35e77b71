// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package traces_test

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/internal/documenttest"
)

// The file of a collector in the document is one: its parts are there, and it listens where the document has spans sent.
func TestTheConfigurationOfACollector(t *testing.T) {
	var file struct {
		Receivers map[string]struct {
			Protocols map[string]struct{ Endpoint string }
		}
		Processors, Exporters map[string]any
		Service               struct {
			Pipelines map[string]struct{ Receivers, Processors, Exporters []string }
		}
	}
	block := documenttest.Blocks(t)[0]
	if err := yaml.UnmarshalStrict([]byte(block.Text), &file); err != nil {
		t.Fatalf("%s: %v", block, err)
	}
	pipeline, found := file.Service.Pipelines["traces"]
	if !found || len(pipeline.Receivers) == 0 || len(pipeline.Exporters) == 0 {
		t.Fatalf("%s has no pipeline of traces: %+v", block, file.Service)
	}
	for _, name := range pipeline.Receivers {
		_, port, _ := strings.Cut(file.Receivers[name].Protocols["http"].Endpoint, ":")
		page, err := os.ReadFile("../docs/traces.md")
		if err != nil {
			t.Fatal(err)
		}
		if port == "" || !strings.Contains(string(page), "OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:"+port+" ") {
			t.Errorf("%s: the receiver %s listens on port %q, and the document has spans sent elsewhere", block, name, port)
		}
	}
	for _, name := range pipeline.Processors {
		if _, found := file.Processors[name]; !found {
			t.Errorf("%s has no processor %s", block, name)
		}
	}
	for _, name := range pipeline.Exporters {
		if _, found := file.Exporters[name]; !found {
			t.Errorf("%s has no exporter %s", block, name)
		}
	}
}
