// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"log/slog"

	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/traces"
)

// Traces returns the option that exports traces to the receiver of the OTEL_* variables, or no option if they name none. A
// mistake in them is logged: a platform may set them in every container, and a cluster needs its controllers more.
func Traces(getenv func(string) string, service string, log *slog.Logger) []manager.Option {
	config, err := traces.FromEnvironment(getenv, service)
	if err != nil {
		log.Error("there are no traces: an environment variable cannot be used", "error", err)
		return nil
	}
	if config == nil {
		return nil
	}
	config.Log = log
	exporter, err := traces.New(*config)
	if err != nil {
		log.Error("there are no traces: an environment variable cannot be used", "error", err)
		return nil
	}
	log.Info("exporting traces", "receiver", exporter.Receiver())
	return []manager.Option{manager.Traces(exporter)}
}
