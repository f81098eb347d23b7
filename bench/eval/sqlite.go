//go:build linux

package eval

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"

	"tansy/bench/internal/figures"
	"tansy/bench/internal/rig"
)

// sqlite is orders and payments as TPC-C has them, by one client of SQLite, whose every transaction is durable before
// the next one begins.
func sqlite(options) (es []experiment) {
	for _, mode := range []string{"wal", "delete"} {
		es = append(es, experiment{
			[]figures.Metric{{Name: fmt.Sprintf("transactions, journal_mode = %s", mode), Unit: "/s"}},
			func(ctx context.Context, s *site) ([]float64, error) {
				rate, err := s.orders(ctx, mode)
				return []float64{rate}, err
			},
		})
	}
	return es
}

// What there is of each kind in the only warehouse: a tenth of TPC-C's.
const (
	districts = 10
	customers = 300 // in each district
	items     = 10_000
)

const schema = `pragma journal_mode = %s; begin;
create table warehouse(id integer primary key, ytd);
create table district(id integer primary key, ytd, next_order);
create table customer(district, id, balance, payments, data, primary key(district, id)) without rowid;
create table item(id integer primary key, price, name);
create table stock(id integer primary key, quantity, ytd, orders, data);
create table orders(district, id, customer, lines, primary key(district, id)) without rowid;
create table new_order(district, id, primary key(district, id)) without rowid;
create table order_line(district, id, number, item, quantity, amount, primary key(district, id, number)) without rowid;
create table history(district, customer, amount, data);
insert into warehouse values(1, 0);
insert into district select value, 0, 1 from generate_series(1, %d);
insert into customer select d.id, value, 0, 0, hex(randomblob(200)) from district d, generate_series(1, %d);
insert into item select value, value %% 100 + 1, 'item ' || value from generate_series(1, %d);
insert into stock select value, 50, 0, 0, hex(randomblob(25)) from generate_series(1, %[4]d);
commit;`

// orders returns how many transactions there were per second.
func (s *site) orders(ctx context.Context, mode string) (rate float64, err error) {
	folder, err := s.prepared("sqlite-"+mode, func(folder string) error {
		_, err := rig.Command(ctx, "sqlite3", "-bail", filepath.Join(folder, "shop.db"),
			fmt.Sprintf(schema, mode, districts, customers, items))
		return err
	})
	if err != nil {
		return 0, err
	}
	if folder, err = s.copied(ctx, folder); err != nil {
		return 0, err
	}
	program := exec.CommandContext(ctx, "sqlite3", "-bail", filepath.Join(folder, "shop.db"))
	program.SysProcAttr = rig.Apart
	in, err := program.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := program.StdoutPipe()
	if err != nil {
		return 0, err
	}
	var said strings.Builder
	program.Stderr = &said
	if err := program.Start(); err != nil {
		return 0, err
	}
	r, answers := rand.New(rand.NewPCG(1, 1)), bufio.NewScanner(out)
	do := func(sql string, k int) error {
		done := fmt.Sprint("done ", k)
		if _, err := fmt.Fprintf(in, "%s select '%s';\n", sql, done); err != nil {
			return err
		}
		for answers.Scan() {
			if answers.Text() == done {
				return nil
			}
		}
		return io.ErrUnexpectedEOF
	}
	if err = do("pragma synchronous = full;", -1); err == nil {
		rate, _, err = rig.Repeat(ctx, s.duration, 1, func(_, k int) error { return do(transaction(r), k) })
	}
	in.Close()
	io.Copy(io.Discard, out)
	if why := program.Wait(); why != nil || err != nil {
		err = errors.Join(err, fmt.Errorf("sqlite3: %w: %s", why, &said))
	}
	return rate, err
}

// transaction is a new order or a payment, as often.
func transaction(r *rand.Rand) string {
	district, customer := 1+r.IntN(districts), 1+r.IntN(customers)
	if r.IntN(2) == 0 {
		amount := 1 + r.IntN(5000)
		return fmt.Sprintf(`begin immediate;
update warehouse set ytd = ytd + %[1]d;
update district set ytd = ytd + %[1]d where id = %[2]d;
update customer set balance = balance - %[1]d, payments = payments + 1 where district = %[2]d and id = %[3]d;
insert into history values(%[2]d, %[3]d, %[1]d, 'paid');
commit;`,
			amount, district, customer)
	}
	var b strings.Builder
	lines := 5 + r.IntN(11)
	order := fmt.Sprintf("(select next_order from district where id = %d)", district)
	fmt.Fprintf(&b, `begin immediate;
insert into orders values(%[1]d, %[2]s, %[3]d, %[4]d);
insert into new_order values(%[1]d, %[2]s);
`, district, order, customer, lines)
	for n := range lines {
		item, quantity := 1+r.IntN(items), 1+r.IntN(10)
		fmt.Fprintf(&b, `update stock
set quantity = case when quantity >= %[2]d + 10 then quantity - %[2]d else quantity - %[2]d + 91 end,
    ytd = ytd + %[2]d, orders = orders + 1
where id = %[1]d;
insert into order_line select %[3]d, %[4]s, %[5]d, %[1]d, %[2]d, price * %[2]d from item where id = %[1]d;
`, item, quantity, district, order, n)
	}
	fmt.Fprintf(&b, "update district set next_order = next_order + 1 where id = %d; commit;", district)
	return b.String()
}
