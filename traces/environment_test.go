// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package traces_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/traces"
)

func environment(of map[string]string) func(string) string {
	return func(name string) string { return of[name] }
}

// Without a receiver, or switched off, there are no traces.
func TestTracesAreOffUntilAReceiverIsNamed(t *testing.T) {
	for _, of := range []map[string]string{
		{},
		{"OTEL_SERVICE_NAME": "web", "OTEL_RESOURCE_ATTRIBUTES": "a=b"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_SDK_DISABLED": "TRUE"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_TRACES_EXPORTER": "none"},
	} {
		if config, err := traces.FromEnvironment(environment(of), "setpoint"); config != nil || err != nil {
			t.Errorf("%v: %+v, %v; want neither", of, config, err)
		}
	}
}

func TestTheVariablesOfTheReceiver(t *testing.T) {
	for _, c := range []struct {
		of   map[string]string
		want string
	}{
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, "http://collector:4318/v1/traces"},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://collector/otlp/"}, "https://collector/otlp/v1/traces"},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://b:1/in"}, "http://b:1/in"},
		{map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, "http://localhost:4318/v1/traces"},
	} {
		config, err := traces.FromEnvironment(environment(c.of), "setpoint")
		if err != nil || config == nil || config.Endpoint != c.want || config.Resource["service.name"] != "setpoint" {
			t.Errorf("%v: %+v, %v; want %s", c.of, config, err, c.want)
		}
	}
	config, err := traces.FromEnvironment(environment(map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20abc, x=1",
		"OTEL_EXPORTER_OTLP_TIMEOUT": "5", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "3000", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
		"OTEL_SERVICE_NAME": "shop", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,deployment.environment=a%2Cb",
		"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25",
		"OTEL_BSP_MAX_QUEUE_SIZE": "10", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "20", "OTEL_BSP_SCHEDULE_DELAY": "100",
	}), "setpoint")
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(config.Headers, map[string]string{"Authorization": "Bearer abc", "x": "1"}) ||
		!maps.Equal(config.Resource, map[string]string{"service.name": "shop", "deployment.environment": "a,b"}) ||
		config.Timeout != 3*time.Second || !config.Gzip || config.Drop != 0.75 || config.Queue != 10 || config.Batch != 20 || config.Delay != 100*time.Millisecond {
		t.Errorf("the configuration is %+v", config)
	}
}

func TestVariablesThatCannotBeUsed(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(empty, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	for variable, c := range map[string]struct{ value, want string }{
		"OTEL_TRACES_EXPORTER":               {"zipkin", `the exporter "zipkin" is not known; want otlp or none`},
		"OTEL_EXPORTER_OTLP_PROTOCOL":        {"grpc", `"grpc" is not supported; want http/protobuf`},
		"OTEL_EXPORTER_OTLP_COMPRESSION":     {"zstd", `"zstd" is not supported; want none or gzip`},
		"OTEL_EXPORTER_OTLP_HEADERS":         {"hunter2", "want name=value pairs"},
		"OTEL_EXPORTER_OTLP_TIMEOUT":         {"1s", `"1s": want a number above 0`},
		"OTEL_EXPORTER_OTLP_CERTIFICATE":     {empty, "has no certificate in PEM"},
		"OTEL_EXPORTER_OTLP_CLIENT_KEY":      {empty, "no such file"},
		"OTEL_TRACES_SAMPLER":                {"jaeger_remote", `the sampler "jaeger_remote" is not known`},
		"OTEL_BSP_MAX_QUEUE_SIZE":            {"-1", "want a number above 0"},
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": {"http/json", "want http/protobuf"},
		"OTEL_EXPORTER_OTLP_ENDPOINT":        {"http://user:hunter2@[", "want a URL such as"},
	} {
		of := map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces", variable: c.value}
		if strings.HasSuffix(variable, "OTLP_ENDPOINT") {
			delete(of, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
		}
		config, err := traces.FromEnvironment(environment(of), "setpoint")
		if config != nil || err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s=%s: %v; want an error with %q", variable, c.value, err, c.want)
		}
	}
	share := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a", "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "NaN"}
	if _, err := traces.FromEnvironment(environment(share), "setpoint"); err == nil || !strings.Contains(err.Error(), "OTEL_TRACES_SAMPLER_ARG") {
		t.Errorf("a share that is no number: %v", err)
	}
}

func TestAConfigThatCannotBeUsed(t *testing.T) {
	for _, c := range []traces.Config{
		{}, {Endpoint: "collector:4318"}, {Endpoint: "ftp://collector"}, {Endpoint: "http://user:hunter2@["},
		{Endpoint: "http://a", Queue: -1}, {Endpoint: "http://a", Drop: 2}, {Endpoint: "http://a", Delay: -1},
	} {
		if _, err := traces.New(c); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
