// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package traces_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
	"github.com/setpoint-io/setpoint/traces"
)

// A program exports the runs of its controllers to the receiver that its environment names.
func Example() {
	collector := httptest.NewServer(http.NotFoundHandler()) // a collector of OpenTelemetry
	defer collector.Close()
	getenv := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL, "OTEL_SERVICE_NAME": "shop-operator"}

	config, err := traces.FromEnvironment(func(name string) string { return getenv[name] }, "operator") // or os.Getenv
	if err != nil || config == nil {
		fmt.Println("no traces:", err)
		return
	}
	exporter, err := traces.New(*config)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = manager.New(fakeapi.New().Config(), manager.Traces(exporter))
	fmt.Println(config.Resource["service.name"], exporter.Receiver() == collector.URL+"/v1/traces", err)
	// Output: shop-operator true <nil>
}
