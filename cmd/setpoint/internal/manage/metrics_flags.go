// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"fmt"
	"os"
	"regexp"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/setpoint-io/setpoint/manager"
)

// metricsFlags are those of kube-controller-manager about single metrics.
// Source: k8s.io/component-base/metrics/api/v1.
type metricsFlags struct {
	disabled []string
	labels   map[string]string // metric and label, with a comma between them, to values
	file     string
}

func (m *metricsFlags) flags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&m.disabled, "disabled-metrics", nil, "`names` of metrics that are not served")
	flags.StringToStringVar(&m.labels, "allow-metric-labels", nil, noEffect+idleReason("allow-metric-labels"))
	flags.StringVar(&m.file, "allow-metric-labels-manifest", "", noEffect+idleReason("allow-metric-labels-manifest"))
}

// options are those of the manager.
func (m *metricsFlags) options() []manager.Option {
	return []manager.Option{manager.DisabledMetrics(m.disabled...)}
}

// idle names the flags that have no effect: metrics here have labels of few values alone.
func (m *metricsFlags) idle() (attributes []any) {
	switch {
	case m.file != "":
		return []any{"metrics", "--allow-metric-labels-manifest"}
	case m.labels != nil:
		return []any{"metrics", "--allow-metric-labels"}
	}
	return nil
}

// check reads the file and returns what is wrong with the flags.
func (m *metricsFlags) check() error {
	name, pair := regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`), regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*,[a-zA-Z_][a-zA-Z0-9_]*$`)
	for _, metric := range m.disabled {
		if !name.MatchString(metric) {
			return fmt.Errorf("--disabled-metrics: %q is no name of a metric", metric)
		}
	}
	if m.file != "" {
		if m.labels != nil {
			return fmt.Errorf("--allow-metric-labels-manifest: --allow-metric-labels says it already; give one of them")
		}
		text, err := os.ReadFile(m.file)
		if err != nil {
			return fmt.Errorf("--allow-metric-labels-manifest: %w", err)
		}
		if err := yaml.Unmarshal(text, &m.labels); err != nil {
			return fmt.Errorf("--allow-metric-labels-manifest: %s: want a YAML mapping of METRIC,LABEL to values", m.file) // err has what stands there
		}
	}
	for key := range m.labels {
		if !pair.MatchString(key) {
			return fmt.Errorf("--allow-metric-labels: %q: want a metric and a label of it, such as workqueue_depth,name", key)
		}
	}
	return nil
}
