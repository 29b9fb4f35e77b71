// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/internal/cli"
)

// verbosity is how much is to be logged. Each -v without a number is one more; a number is
// one of kube-controller-manager, after -v, -v= and --v= alike.
type verbosity struct {
	times int
	klog  int
}

func (v *verbosity) flags(flags *pflag.FlagSet) {
	counted := flags.Lookup("verbose")
	counted.Value = (*timesOrLevel)(v)
	flags.Var((*level)(v), "v", "log more, with the numbers of kube-controller-manager: 4 is as -v, 6 as -vv")
}

// total is the number of -v that the flags stand for.
// Source: the logging conventions of Kubernetes, by which 2 is usual, 4 is for debugging and
// 6 shows requests.
func (v *verbosity) total() int {
	switch {
	case v.klog >= 6:
		return max(v.times, 2)
	case v.klog >= 4:
		return max(v.times, 1)
	}
	return v.times
}

// level is the flag --v.
type level verbosity

// String implements pflag.Value.
func (l *level) String() string { return strconv.Itoa(l.klog) }

// Type implements pflag.Value.
func (l *level) Type() string { return "level" }

// ExplainsItself says that its errors do.
func (l *level) ExplainsItself() {}

// Set implements pflag.Value.
func (l *level) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return errors.New("want a whole number that is not negative, such as 4")
	}
	l.klog = int(n)
	return nil
}

// timesOrLevel is the flag -v.
type timesOrLevel verbosity

// String implements pflag.Value.
func (t *timesOrLevel) String() string { return strconv.Itoa(t.times) }

// Type implements pflag.Value.
func (t *timesOrLevel) Type() string { return "count" }

// Set implements pflag.Value. pflag gives +1 for a -v without a number.
func (t *timesOrLevel) Set(text string) error {
	if text == "+1" {
		t.times++
		return nil
	}
	return (*level)(t).Set(text)
}

// JoinLevels makes "-v=4" of "-v 4" and of "-v4", which mean the same to
// kube-controller-manager. To others a -v has no number.
func JoinLevels(args []string) []string {
	var joined []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return append(joined, args[i:]...)
		}
		switch {
		case arg == "-v" && i+1 < len(args) && isNumber(args[i+1]):
			i++
			arg = "-v=" + args[i]
		case len(arg) > 2 && arg[:2] == "-v" && isNumber(arg[2:]):
			arg = "-v=" + arg[2:]
		}
		joined = append(joined, arg)
	}
	return joined
}

func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 64)
	return err == nil
}

// logFormat is the flag --logging-format of kube-controller-manager.
type logFormat struct{ text string }

func (f *logFormat) flags(flags *pflag.FlagSet) {
	flags.StringVar(&f.text, "logging-format", "", "text or json, as of kube-controller-manager; --log-format says it too")
}

// into has it count, if it is given.
func (f *logFormat) into(l *cli.Logging) error {
	switch f.text {
	case "":
	case "text", "json":
		l.SetFormat(f.text)
	default:
		return fmt.Errorf("--logging-format=%s: want text or json", f.text)
	}
	return nil
}
