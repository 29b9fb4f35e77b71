// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/internal/cli"
)

// configured parses flags and then a file that stands for flags, as "setpoint manager" does.
func configured(t *testing.T, text string, args ...string) (*pflag.FlagSet, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := Command(&cli.World{}, "").Flags()
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	file := configFile{path}
	return flags, file.apply(flags)
}

func TestAConfigFileStandsForFlags(t *testing.T) {
	for _, test := range []struct {
		name, text string
		args       []string
		flag, want string
	}{
		{"a number", "concurrent-deployment-syncs: 7", nil, "concurrent-deployment-syncs", "7"},
		{"as old manifests write it", "concurrent_rc_syncs: 7", nil, "concurrent-rc-syncs", "7"},
		{"a time", "node-monitor-grace-period: 40s", nil, "node-monitor-grace-period", "40s"},
		{"a time in quotes", "node-monitor-grace-period: \"40s\"", nil, "node-monitor-grace-period", "40s"},
		{"a fraction", "unhealthy-zone-threshold: 0.7", nil, "unhealthy-zone-threshold", "0.7"},
		{"a whole fraction", "kube-api-qps: 50", nil, "kube-api-qps", "50"},
		{"a switch", "leader-elect: false", nil, "leader-elect", "false"},
		{"an address", "bind-address: 127.0.0.1", nil, "bind-address", "127.0.0.1"},
		{"a list", "controllers:\n- '*'\n- -deployment\n", nil, "controllers", "[*,-deployment]"},
		{"a list in a text", "controllers: '*,-deployment'", nil, "controllers", "[*,-deployment]"},
		{"gates", "feature-gates:\n  PodDeletionCost: true\n  LogarithmicScaleDown: true\n", nil, "feature-gates", "LogarithmicScaleDown=true,PodDeletionCost=true"},
		{"gates in a text", "feature-gates: PodDeletionCost=true", nil, "feature-gates", "PodDeletionCost=true"},
		{"a version that looks like a number", "emulated-version: 1.35", nil, "emulated-version", "[1.35]"},
		{"JSON", `{"secure-port": 0}`, nil, "secure-port", "0"},
		{"the flag wins", "concurrent-deployment-syncs: 7", []string{"--concurrent-deployment-syncs=9"}, "concurrent-deployment-syncs", "9"},
		{"the flag wins with its default", "leader-elect: false", []string{"--leader-elect"}, "leader-elect", "true"},
		{"a list does not add to the flag", "controllers: ['*']", []string{"--controllers=job"}, "controllers", "[job]"},
		{"nothing", "", nil, "concurrent-deployment-syncs", "5"},
		{"a remark", "# nothing yet\n", nil, "concurrent-deployment-syncs", "5"},
		{"a beginning", "---\n", nil, "concurrent-deployment-syncs", "5"},
	} {
		t.Run(test.name, func(t *testing.T) {
			flags, err := configured(t, test.text, test.args...)
			if err != nil {
				t.Fatal(err)
			}
			if got := flags.Lookup(test.flag).Value.String(); got != test.want {
				t.Errorf("--%s is %s, want %s", test.flag, got, test.want)
			}
		})
	}
}

func TestAMistakeInAConfigFileIsSaidWithLineAndKey(t *testing.T) {
	for _, test := range []struct {
		name, text string
		args       []string
		want       string
	}{
		{"an unknown key", "\nconcurrent-deploymet-syncs: 5", nil, `line 2: there is no key "concurrent-deploymet-syncs"; did you mean "concurrent-deployment-syncs"?`},
		{"a key of somebody else's", "a: b\nhorizontal-pod-autoscaler-sync-period: 15s", nil, `line 1: there is no key "a"`},
		{"a value of a controller that is not there", "pvclaimbinder-sync-period: 15", nil, "line 1: pvclaimbinder-sync-period: \"15\": want a time"},
		{"twice", "leader-elect: true\nsecure-port: 0\nleader-elect: false", nil, `line 3: "leader-elect" stands here twice, the first time in line 1`},
		{"twice, written otherwise", "leader-elect: true\nleader_elect: true", nil, `line 2: "leader_elect" stands here twice`},
		{"no unit", "node-monitor-period: 5", nil, `line 1: node-monitor-period: "5": want a time with its unit, such as 50s, 5m or 1h30m`},
		{"a wrong unit", "node-monitor-period: 5 seconds", nil, `line 1: node-monitor-period: "5 seconds": want a time with its unit`},
		{"a text for a number", "concurrent-gc-syncs: many", nil, `line 1: concurrent-gc-syncs: "many": want a whole number`},
		{"a number in quotes", "concurrent-gc-syncs: '5'", nil, `line 1: concurrent-gc-syncs: "5": want a whole number`},
		{"a fraction for a number", "concurrent-gc-syncs: 1.5", nil, `"1.5": want a whole number`},
		{"a number that is too large", "concurrent-gc-syncs: 99999999999999999999", nil, "want a whole number"},
		{"a number for a switch", "leader-elect: 1", nil, `line 1: leader-elect: "1": want true or false`},
		{"a word for a switch", "leader-elect: yes", nil, `line 1: leader-elect: "yes": want true or false`},
		{"nothing for a value", "leader-elect:", nil, `line 1: leader-elect: "": want true or false`},
		{"nothing for a text", "kubeconfig:", nil, `line 1: kubeconfig: "": want a text`},
		{"a list for a number", "concurrent-gc-syncs: [5]", nil, "line 1: concurrent-gc-syncs: want a whole number"},
		{"a mapping for a list", "controllers: {a: b}", nil, "line 1: controllers: want a list, or names with commas between them"},
		{"a list in a list", "controllers:\n- [a]", nil, "line 1: controllers: line 2: want a name"},
		{"an unknown gate", "feature-gates:\n  PodDeletionCst: true", nil, "did you mean PodDeletionCost?"},
		{"a gate twice", "feature-gates:\n  PodDeletionCost: true\n  PodDeletionCost: true", nil, `line 3: "PodDeletionCost" stands here twice, the first time in line 2`},
		{"a gate that is neither", "feature-gates:\n  PodDeletionCost: on", nil, `line 2: PodDeletionCost: "on": want true or false`},
		{"a value that does not work", "vmodule: a", nil, "line 1: vmodule: a: \"a\": want a pattern of files"},
		{"no address", "bind-address: here", nil, `"here": want an IP address`},
		{"a mistake that the flag overrules", "concurrent-gc-syncs: many", []string{"--concurrent-gc-syncs=5"}, `"many": want a whole number`},
		{"a file in the file", "config: other.yaml", nil, "line 1: config: this is for the command line alone"},
		{"no mapping", "- leader-elect", nil, "line 1: want a mapping"},
		{"a word", "leader-elect", nil, "line 1: want a mapping"},
		{"a second document", "leader-elect: true\n---\nleader-elect: false\n", nil, "a second document; want one"},
		{"a reference", "kubeconfig: &a x\ntls-cert-file: *a", nil, "line 2: tls-cert-file: want the value itself"},
		{"no YAML", "leader-elect: true\n\tsecure-port: 0", nil, "line 2: found"},
		{"no text", "\x00\x01", nil, "control characters are not allowed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := configured(t, test.text, test.args...)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "--config: ") || !strings.Contains(err.Error(), "config.yaml") {
				t.Errorf("%v\nwant the file and\n%s", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("%v has several lines", err)
			}
		})
	}
}

// A kubeconfig that is given by mistake has secrets in it.
func TestWhatStandsUnderUnknownKeysIsNotShown(t *testing.T) {
	_, err := configured(t, "users:\n- name: me\n  user:\n    token: open-sesame\n")
	if err == nil || strings.Contains(err.Error(), "sesame") {
		t.Errorf("%v", err)
	}
}

func FuzzConfigFile(f *testing.F) {
	for _, text := range []string{
		"leader-elect: false", "controllers: ['*', -deployment]", "feature-gates: {PodDeletionCost: true}", "a: &a [*a]",
		"<<: {a: b}", "? [a]\n: b", "---\n...\n", "\ufeffsecure-port: 0x10", "v: !!int 'x'", "config: {}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		settings, err := readSettings(strings.NewReader(text))
		if err != nil {
			return
		}
		flags := Command(&cli.World{}, "").Flags()
		for _, s := range settings {
			if s.line < 1 {
				t.Errorf("%q is in line %d", s.key, s.line)
			}
			_ = s.apply(flags) // an error is as good; it must not panic
		}
	})
}
