// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/setpoint-io/setpoint/watch/sink"
)

func TestSecretsAreNotInWhatIsPrintedOfOptions(t *testing.T) {
	var o sink.Options
	if err := yaml.Unmarshal([]byte("webhook: {url: 'https://h/hunter2', headers: [{name: A, value: hunter2}]}"), &o); err != nil {
		t.Fatal(err)
	}
	if o.Webhook.URL.Reveal() != "https://h/hunter2" || o.Webhook.Headers[0].Value.Reveal() != "hunter2" {
		t.Fatal("the values are not there")
	}
	hides := struct{ inside sink.Secret }{o.Webhook.URL} // fmt does not ask fields that are not exported
	var out bytes.Buffer
	for _, v := range []any{o, &o, o.Webhook, *o.Webhook, o.Webhook.Headers, o.Webhook.URL, &o.Webhook.URL, hides, []any{hides}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%t", "%10.3s", "%c"} {
			_, _ = fmt.Fprintf(&out, verb+"\n", v)
		}
		for _, log := range []*slog.Logger{slog.New(slog.NewTextHandler(&out, nil)), slog.New(slog.NewJSONHandler(&out, nil))} {
			log.Info("x", "v", v)
		}
		asJSON, err := json.Marshal(v)
		if err != nil {
			t.Error(err)
		}
		asYAML, err := yaml.Marshal(v)
		if err != nil {
			t.Error(err)
		}
		out.Write(asJSON)
		out.Write(asYAML)
	}
	text := out.String()
	// Hexadecimal is looked for as well.
	if strings.Contains(text, "hunter2") || strings.Contains(strings.ToLower(text), fmt.Sprintf("%x", "hunter2")) || !strings.Contains(text, "(secret)") {
		t.Error(text)
	}
	if none := (sink.Secret{}); none.Reveal() != "" || fmt.Sprint(none) != "" || !none.IsZero() {
		t.Errorf("%v", none)
	}
}
