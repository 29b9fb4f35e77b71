// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/setpoint-io/setpoint/watch/sink"
)

func TestMistakesInOptionsNameTheField(t *testing.T) {
	for text, field := range map[string]string{
		"terminal: {form: xml}":                                     "terminal.form",
		"file: {}":                                                  "file.path",
		"file: {path: /tmp/}":                                       "file.path",
		"file: {path: x, form: pdf}":                                "file.form",
		"file: {path: x, maxSizeMB: -1}":                            "file.maxSizeMB",
		"file: {path: x, maxAgeDays: -1}":                           "file.maxAgeDays",
		"file: {path: x, maxBackups: -1}":                           "file.maxBackups",
		"webhook: {}":                                               "webhook.url",
		"webhook: {url: 'x'}":                                       "webhook.url",
		"webhook: {url: 'https://'}":                                "webhook.url",
		"webhook: {url: 'https://x/#a'}":                            "webhook.url",
		"webhook: {url: 'http://x', urlFrom: {env: A}}":             "webhook.urlFrom",
		"webhook: {urlFrom: {env: A, file: b}}":                     "webhook.urlFrom",
		"webhook: {url: 'http://x', mode: all}":                     "webhook.mode",
		"webhook: {url: 'http://x', signingKey: {env: A, file: b}}": "webhook.signingKey",
		"webhook: {url: 'http://x', headers: [{value: a}]}":         "webhook.headers[0].name",
		"webhook: {url: 'http://x', headers: [{name: A, value: a}, {name: 'A:', value: a}]}": "webhook.headers[1].name",
		"webhook: {url: 'http://x', headers: [{name: content-TYPE, value: a}]}":              "webhook.headers[0].name",
		"webhook: {url: 'http://x', headers: [{name: A}]}":                                   "webhook.headers[0].from",
		"webhook: {url: 'http://x', headers: [{name: A, value: a, from: {env: A}}]}":         "webhook.headers[0].from",
		"webhook: {url: 'http://x', headers: [{name: A, value: \"a\\nb\"}]}":                 "webhook.headers[0].value",
		"kubernetesEvents: {clusterNamespace: monitoring}":                                   "kubernetesEvents.clusterNamespace",
		"kubernetesEvents: {instance: '" + strings.Repeat("x", 129) + "'}":                   "kubernetesEvents.instance",
		"webhook: {url: 'http://x', body: '{{.Verb'}":                                        "webhook.body",
		"webhook: {url: 'http://x', body: 'text'}":                                           "webhook.body",
		"webhook: {url: 'http://x', body: '{}', markup: html}":                               "webhook.markup",
		"mail: {}":                                                                 "mail.server",
		"mail: {server: mail.example.com}":                                         "mail.server",
		"mail: {server: 'x:25', from: watch}":                                      "mail.from",
		"mail: {server: 'x:25', from: a@b.c}":                                      "mail.to",
		"mail: {server: 'x:25', from: a@b.c, to: [d@e.f, g]}":                      "mail.to[1]",
		"mail: {server: 'x:25', from: a@b.c, to: [d@e.f], subject: \"a\\nb\"}":     "mail.subject",
		"mail: {server: 'x:25', from: a@b.c, to: [d@e.f], username: me}":           "mail.passwordFrom",
		"mail: {server: 'x:25', from: a@b.c, to: [d@e.f], passwordFrom: {env: A}}": "mail.username",
		"mail: {server: 'x:25', from: a@b.c, to: [d@e.f], template: '{{.Verb'}":    "mail.template",
		"{terminal: {}, delivery: {batch: -1}}":                                    "delivery.batch",
		"{terminal: {}, delivery: {batch: 10001}}":                                 "delivery.batch",
		"{terminal: {}, delivery: {timeout: -1s}}":                                 "delivery.timeout",
		"{terminal: {}, delivery: {minWait: 10m}}":                                 "delivery.maxWait",
		"{terminal: {}, delivery: {maxAge: -1h}}":                                  "delivery.maxAge",
		"{}":                              "",
		"{terminal: {}, file: {path: x}}": "",
	} {
		var o sink.Options
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(text, err)
		}
		err := o.Validate()
		var wrong *sink.FieldError
		switch {
		case err == nil:
			t.Errorf("%s: nothing is wrong", text)
		case errors.As(err, &wrong) != (field != "") || wrong != nil && wrong.Field != field:
			t.Errorf("%s: %v; want %s", text, err, field)
		}
	}
}

func TestOptionsThatAreRight(t *testing.T) {
	for text, want := range map[string]sink.Delivery{
		"terminal: {}": {Batch: 100, Timeout: 30 * time.Second, MinWait: time.Second, MaxWait: 5 * time.Minute, MaxAge: 24 * time.Hour},
		"{file: {path: x, form: yaml}, delivery: {batch: 3, timeout: 1s, minWait: 2s, maxWait: 3s, maxAge: 1h}}": {
			Batch: 3, Timeout: time.Second, MinWait: 2 * time.Second, MaxWait: 3 * time.Second, MaxAge: time.Hour},
		"{webhook: {url: 'https://x/y?z'}, delivery: {maxAge: 1h}}":                                         {Batch: 1, Timeout: 30 * time.Second, MinWait: time.Second, MaxWait: 5 * time.Minute, MaxAge: time.Hour},
		"webhook: {urlFrom: {file: x}, mode: batch}":                                                        {Batch: 100, Timeout: 30 * time.Second, MinWait: time.Second, MaxWait: 5 * time.Minute, MaxAge: 24 * time.Hour},
		"kubernetesEvents: {clusterNamespace: kube-system}":                                                 {Batch: 1, Timeout: 30 * time.Second, MinWait: time.Second, MaxWait: 5 * time.Minute, MaxAge: 24 * time.Hour},
		"webhook: {urlFrom: {file: x}, mode: batch, body: '{\"text\": {{json (words .)}}}', markup: slack}": {Batch: 20, Timeout: 30 * time.Second, MinWait: time.Second, MaxWait: 5 * time.Minute, MaxAge: 24 * time.Hour},
		"mail: {server: 'x:25', from: a@b.c, to: [D <d@e.f>]}":                                              {Batch: 100, Timeout: 30 * time.Second, MinWait: time.Second, MaxWait: 5 * time.Minute, MaxAge: 24 * time.Hour},
	} {
		var o sink.Options
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(text, err)
		}
		if err := o.Validate(); err != nil || o.Effective() != want {
			t.Errorf("%s: %v, %+v", text, err, o.Effective())
		}
	}
}
