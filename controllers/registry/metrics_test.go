// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	_ "embed"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/manager"
)

// upstreamMetrics has a line for each metric of the controllers of kube-controller-manager 1.37: its
// name, its labels, its stability, and "missing" if no controller here has it.
// Source: the packages below k8s.io/kubernetes/pkg/controller that declare metrics.
//
//go:embed testdata/kube-controller-manager-metrics.txt
var upstreamMetrics string

// described matches what a prometheus.Desc says of itself.
var described = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

// metricsOf returns the metrics of all controllers, as their names with their labels.
func metricsOf(t *testing.T) map[string]string {
	t.Helper()
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	cluster, all := everything(t), map[string]string{}
	for _, d := range Known() {
		d.Learn(cluster)
		switchOn(t, d)
		c, err := d.New(mgr)
		if err != nil {
			t.Fatal(err)
		}
		collector, has := c.(prometheus.Collector)
		if !has {
			continue
		}
		descs := make(chan *prometheus.Desc, 100)
		collector.Describe(descs)
		close(descs)
		for desc := range descs {
			is := described.FindStringSubmatch(desc.String())
			if is == nil {
				t.Fatalf("%s is not understood", desc)
			}
			labels := strings.FieldsFunc(is[2], func(r rune) bool { return r == ',' || r == ' ' })
			slices.Sort(labels)
			all[is[1]] = strings.Join(labels, ",")
		}
	}
	return all
}

func TestMetricsHaveTheNamesAndLabelsOfKubeControllerManager(t *testing.T) {
	have := metricsOf(t)
	document, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(document), "\n### Of single controllers\n")
	present, absent, both := strings.Cut(section, "\n### Missing\n")
	if !found || !both {
		t.Fatal("docs/metrics.md does not have the sections")
	}
	absent, _, _ = strings.Cut(absent, "\n## ")
	upstream := map[string]bool{}
	for line := range strings.Lines(upstreamMetrics) {
		name, labels, _ := strings.Cut(strings.TrimSpace(line), " ")
		labels, stability, _ := strings.Cut(labels, " ")
		stability, missing := strings.CutSuffix(stability, " missing")
		upstream[name] = true
		got, has := have[name]
		if missing == has {
			t.Errorf("%s (%s): here it is %v, and the list says that it is missing: %v", name, stability, has, missing)
		}
		if has && got != strings.Trim(labels, "-") {
			t.Errorf("%s has the labels %q, want %q", name, got, labels)
		}
		in := present
		if missing {
			in = absent
		}
		if !strings.Contains(in, "`"+name+"`") {
			t.Errorf("docs/metrics.md does not have %s (%s) in the right section", name, stability)
		}
	}
	for name := range have {
		if !upstream[name] && !strings.HasPrefix(name, "setpoint_") {
			t.Errorf("kube-controller-manager does not have %s", name)
		}
		if !strings.Contains(string(document), "`"+name+"`") {
			t.Errorf("docs/metrics.md does not have %s", name)
		}
	}
}
