// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Values of metrics are in thousandths, as upstream counts them: 500m of CPU is 500, and 2 bytes of
// memory are 2000. A value that does not fit is the largest one that does.

// longestQuantity is how long the text of a quantity may be. Parsing one takes time that grows
// with its digits.
const longestQuantity = 64

// milli returns a quantity in thousandths.
func milli(q resource.Quantity) int64 {
	switch most := resource.NewQuantity(math.MaxInt64/1000, resource.DecimalSI); {
	case q.Cmp(*most) > 0:
		return math.MaxInt64
	case q.Sign() < 0 && q.CmpInt64(-math.MaxInt64/1000) < 0:
		return -math.MaxInt64
	}
	return q.MilliValue()
}

// parseMilli returns a quantity that came as JSON, a text or a number, in thousandths.
func parseMilli(raw json.RawMessage) (int64, error) {
	text := string(raw)
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(raw, &text); err != nil {
			return 0, err
		}
	}
	switch text = strings.TrimSpace(text); {
	case text == "" || text == "null":
		return 0, errors.New("no value")
	case len(text) > longestQuantity:
		return 0, fmt.Errorf("a value of %d characters, which is no quantity", len(text))
	case hugeExponent(text):
		return 0, fmt.Errorf("%q, whose exponent is too large", text)
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, fmt.Errorf("%q, which is no quantity", text)
	}
	return milli(q), nil
}

// hugeExponent reports whether a quantity is written with an exponent of more than two digits. To
// compare such a number with another one takes time and memory that grow with the number.
func hugeExponent(text string) bool {
	i := strings.LastIndexAny(text, "eE")
	return i >= 0 && len(strings.TrimLeft(text[i+1:], "+-0")) > 2
}

// quantity returns thousandths as a quantity for a status.
func quantity(of corev1.ResourceName, thousandths int64) *resource.Quantity {
	format := resource.DecimalSI
	if of == corev1.ResourceMemory {
		format = resource.BinarySI
	}
	return resource.NewMilliQuantity(thousandths, format)
}

// add adds two values. A sum that does not fit is the nearest value that does.
func add(a, b int64) int64 {
	switch sum := a + b; {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return -math.MaxInt64
	default:
		return sum
	}
}

// toReplicas rounds a number of replicas up.
func toReplicas(n float64) int32 {
	switch n = math.Ceil(n); {
	case math.IsNaN(n):
		return 0
	case n > math.MaxInt32:
		return math.MaxInt32
	case n < math.MinInt32:
		return math.MinInt32
	}
	return int32(n)
}
